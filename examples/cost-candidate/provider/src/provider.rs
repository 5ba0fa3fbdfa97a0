//! What the provider answers, apart from sockets.

use crate::behaviour::Behaviour;
use crate::state::{Account, Answered, CURRENCY, PLANS, SERVICE_VERSION, State, plan};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One request, as far as the provider looks at it.
#[derive(Debug, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) if_match: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// What goes back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) version: Option<u64>,
    pub(crate) body: Value,
    /// Whether a change took effect with this very request.
    pub(crate) applied: bool,
}

/// An account as it was before its last change, and when that was.
#[derive(Debug)]
struct Before {
    name: String,
    account: Account,
    changed_at: Instant,
}

struct Inner {
    state: State,
    before: Option<Before>,
    behaviour: Behaviour,
}

/// The provider.
pub(crate) struct Provider {
    path: PathBuf,
    inner: Mutex<Inner>,
}

fn answer(status: u16, body: Value) -> Answer {
    Answer { status, version: None, body, applied: false }
}

fn refused(status: u16, why: &str) -> Answer {
    answer(status, json!({ "error": why }))
}

impl Answer {
    /// To a body that is too long or broke off.
    pub(crate) fn too_long() -> Self {
        refused(413, "the body is too long or broke off")
    }
}

impl Provider {
    pub(crate) fn open(path: &Path, behaviour: Behaviour) -> Result<Self, String> {
        let state = State::load(path)?;
        state.store(path).map_err(|error| format!("the state file {} cannot be written: {error}", path.display()))?;
        Ok(Self { path: path.to_owned(), inner: Mutex::new(Inner { state, before: None, behaviour }) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn behaviour(&self) -> Behaviour {
        self.inner().behaviour
    }

    /// Answers one request. Blocks while state is written.
    pub(crate) fn answer(&self, ask: &Ask<'_>) -> Answer {
        let parts: Vec<&str> = ask.path.trim_matches('/').split('/').collect();
        match (ask.method, parts.as_slice()) {
            ("GET", ["plans"]) => plans(),
            ("GET", ["accounts", name, "plan"]) => self.read(
                name,
                |name, account| json!({ "account": name, "plan": account.plan, "version": account.version }),
            ),
            ("GET", ["accounts", name, "billing"]) => self.read(name, billing),
            ("GET", ["accounts", name, "service"]) => self.read(name, service),
            ("GET", ["accounts", name, "capabilities", feature]) => self.probe(name, feature, ask.query),
            ("PUT", ["accounts", name, "plan"]) => self.change(name, ask),
            ("GET", ["admin", "behaviour"]) => answer(200, json!(self.behaviour())),
            ("PUT", ["admin", "behaviour"]) => match serde_json::from_slice(ask.body) {
                Ok(behaviour) => {
                    self.inner().behaviour = behaviour;
                    answer(200, json!(behaviour))
                }
                Err(error) => refused(400, &error.to_string()),
            },
            ("GET", ["admin", "changes"]) => answer(200, json!({ "changes": self.inner().state.changes })),
            ("GET" | "PUT", _) => refused(404, "there is no such thing"),
            _ => refused(405, "only GET and PUT are answered"),
        }
    }

    /// Reads an account, on bad days as it was or somebody else's.
    fn read(&self, name: &str, show: impl Fn(&str, &Account) -> Value) -> Answer {
        let inner = self.inner();
        let name = match inner.behaviour.wrong_account {
            true => inner.state.accounts.keys().find(|other| *other != name).map_or(name, String::as_str),
            false => name,
        };
        let Some(current) = inner.state.accounts.get(name) else {
            return refused(404, "there is no such account");
        };
        let stale = Duration::from_millis(inner.behaviour.stale_ms);
        let shown = match &inner.before {
            Some(before) if before.name == name && before.changed_at.elapsed() < stale => &before.account,
            Some(_) | None => current,
        };
        Answer { version: Some(shown.version), ..answer(200, show(name, shown)) }
    }

    /// Whether a feature can be had under a plan, tried out at the service's present version.
    fn probe(&self, name: &str, feature: &str, query: Option<&str>) -> Answer {
        let asked = query.and_then(|query| query.strip_prefix("plan="));
        self.read(name, |name, account| {
            let plan = plan(asked.unwrap_or(&account.plan));
            json!({
                "account": name,
                "feature": feature,
                "plan": plan.map(|plan| plan.name),
                "available": plan.is_some_and(|plan| feature == "export" && plan.has_export),
                "service_version": SERVICE_VERSION,
            })
        })
    }

    /// Changes an account's plan, once per key and only at the version asked for.
    fn change(&self, name: &str, ask: &Ask<'_>) -> Answer {
        let Some(key) = ask.idempotency_key else {
            return refused(400, "a change needs an Idempotency-Key");
        };
        let wanted: Option<String> = serde_json::from_slice::<Value>(ask.body)
            .ok()
            .and_then(|body| Some(body.get("plan")?.as_str()?.to_owned()));
        let Some(wanted) = wanted else {
            return refused(400, "the body names no plan");
        };
        let mut inner = self.inner();
        if let Some(answered) = inner.state.answered.get(key) {
            return match answered.account == name && answered.plan == wanted {
                true => changed(answered, false),
                false => refused(422, "the key stands for another change"),
            };
        }
        let Some(account) = inner.state.accounts.get(name).cloned() else {
            return refused(404, "there is no such account");
        };
        if plan(&wanted).is_none() {
            return refused(422, "there is no such plan");
        }
        if ask.if_match.is_some_and(|version| version.trim_matches('"') != account.version.to_string()) {
            return refused(412, "the account is at another version");
        }
        let answered =
            Answered { account: name.to_owned(), plan: wanted.clone(), status: 200, version: account.version + 1 };
        let mut next = inner.state.clone();
        next.accounts.insert(name.to_owned(), Account { plan: wanted, version: answered.version });
        next.answered.insert(key.to_owned(), answered.clone());
        next.changes += 1;
        // Durable first: an answer given is never taken back by a restart.
        if let Err(error) = next.store(&self.path) {
            return refused(500, &error.to_string());
        }
        inner.state = next;
        inner.before = Some(Before { name: name.to_owned(), account, changed_at: Instant::now() });
        changed(&answered, true)
    }
}

fn changed(answered: &Answered, applied: bool) -> Answer {
    Answer {
        status: answered.status,
        version: Some(answered.version),
        body: json!({ "account": answered.account, "plan": answered.plan, "version": answered.version }),
        applied,
    }
}

fn plans() -> Answer {
    let offered = PLANS.map(|plan| json!({ "plan": plan.name, "price_minor": plan.price_minor, "currency": CURRENCY }));
    answer(200, json!({ "provider": "cost-provider", "plans": offered }))
}

fn billing(name: &str, account: &Account) -> Value {
    json!({
        "account": name,
        "plan": account.plan,
        "monthly_price_minor": plan(&account.plan).map(|plan| plan.price_minor),
        "currency": CURRENCY,
        "version": account.version,
    })
}

fn service(name: &str, account: &Account) -> Value {
    let plan = plan(&account.plan);
    json!({
        "account": name,
        "status": "running",
        "export_available": plan.is_some_and(|plan| plan.has_export),
        "latency_ms": plan.map(|plan| plan.latency_ms),
        "version": account.version,
    })
}
