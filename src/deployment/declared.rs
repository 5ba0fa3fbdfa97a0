//! What a deployment declares, by kind and name, beside the file as it was completed.

use super::paths;
use closer_contracts::fault::Fault;
use closer_contracts::id::OperationId;
use closer_contracts::item::{Identity, Item, OperationEntry, PolicyBody, ReadbackMethod, RuleBody, Source};
use closer_contracts::refs::ProducerRole;
use closer_contracts::time::Timestamp;
use closer_protocol::genesis::Founding;
use closer_protocol::services;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What a name can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Identity,
    /// An identity that does work.
    Participant,
    Source,
    /// A source that the runtime's observer speaks for.
    ObservedSource,
    Change,
    ReadbackMethod,
    Operation,
    Capability,
    RefreshPolicy,
    ExpiryPolicy,
    DeadlinePolicy,
    EscalationPolicy,
    Appointment,
    Constraint,
    Grant,
    Obligation,
    Proposition,
    /// Any item.
    Item,
}

impl Kind {
    /// What it is called, and where it is declared.
    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Identity => ("identity", "`[[identity]]`"),
            Self::Participant => ("identity of a participant", "`[[identity]]` with the role `participant`"),
            Self::Source => ("source", "`[[source]]`"),
            Self::ObservedSource => {
                ("source of the runtime's own looks", "`[[source]]` with the emitter `closer.observer`")
            }
            Self::Change => ("kind of change", "`change_kinds` of a `[[source]]`"),
            Self::ReadbackMethod => ("readback method", "`[[readback_method]]`"),
            Self::Operation => ("operation", "`[[operation]]`"),
            Self::Capability => {
                ("capability", "`[[operation]]`, whose own name it is unless `capability` says otherwise")
            }
            Self::RefreshPolicy => ("refresh policy", "`[[policy]]`"),
            Self::ExpiryPolicy => ("expiry policy", "`[[policy]]`"),
            Self::DeadlinePolicy => ("deadline policy", "`[[policy]]`"),
            Self::EscalationPolicy => ("escalation policy", "`[[policy]]`"),
            Self::Appointment => ("appointed issuer", "`[[appointment]]`"),
            Self::Constraint => ("constraint", "`[[constraint]]`"),
            Self::Grant => ("grant", "`[[grant]]`"),
            Self::Obligation => ("obligation", "`[[obligation]]`"),
            Self::Proposition => ("proposition", "`gap` and `resolution_conditions` of an `[[obligation]]`"),
            Self::Item => ("item", "one of the lists"),
        }
    }
}

/// How many names are told where one is not among them.
const NAMES_TOLD_MAX: usize = 12;

/// A deployment as a whole: what the checks are read against.
#[derive(Debug)]
pub(super) struct Declared {
    /// The file, completed: every item as it would be founded, in the order of the file.
    pub(super) file: Value,
    /// The deployment's folder, absolute.
    pub(super) directory: PathBuf,
    /// What relative times count from.
    pub(super) now: Timestamp,
    items: Vec<Item>,
    names: BTreeMap<Kind, BTreeSet<String>>,
}

impl Declared {
    /// `raw` is the file with nothing left out being filled in; what is founded takes the place of what it was read from.
    pub(super) fn of(raw: Map<String, Value>, founding: &Founding, directory: PathBuf, now: Timestamp) -> Self {
        let mut names = Names::default();
        let items = founding.items.iter();
        items.for_each(|item| names.item(item));
        let services = services::identities(&founding.profile.user);
        services.iter().for_each(|service| names.identity(service));
        for (obligation, reentries) in &founding.obligations {
            names.put(Kind::Obligation, &obligation.obligation_id);
            names.put(Kind::Item, &obligation.obligation_id);
            reentries.iter().for_each(|reentry| names.put(Kind::Item, &reentry.reentry_id));
            let conditions = obligation.resolution_conditions.iter().map(|condition| &condition.proposition);
            conditions.chain(&obligation.gap.propositions).for_each(|id| names.put(Kind::Proposition, id));
        }
        let file = completed(raw, founding);
        Self { file, directory, now, items: founding.items.clone(), names: names.0 }
    }

    /// Whether a name is declared as one of these kinds; where not, which there are.
    pub(super) fn named(&self, kinds: &[Kind], name: &str) -> Result<(), Fault> {
        let of = |kind: &Kind| self.names.get(kind).into_iter().flatten();
        if kinds.iter().any(|kind| of(kind).any(|known| known == name)) {
            return Ok(());
        }
        let known: BTreeSet<&String> = kinds.iter().flat_map(of).collect();
        let told = kinds.iter().map(|kind| kind.told());
        let what = told.clone().map(|(what, _)| what).collect::<Vec<_>>().join(" or ");
        let place = told.map(|(_, place)| place).collect::<Vec<_>>().join(" or ");
        let shown: Vec<String> = known.iter().take(NAMES_TOLD_MAX).map(|name| format!("`{name}`")).collect();
        let more = if known.len() > shown.len() { ", ..." } else { "" };
        let declared = match shown.is_empty() {
            true => "there is none".to_owned(),
            false => format!("there are {}{more}", shown.join(", ")),
        };
        Err(Fault::schema(format!("no {what} is called `{name}`: declare it ({place}) or name another; {declared}")))
    }

    /// What stands at a path of the completed file.
    pub(super) fn at(&self, path: &str) -> Option<&Value> {
        paths::at(&self.file, path)
    }

    pub(super) fn operation(&self, id: &OperationId) -> Option<&OperationEntry> {
        self.operations().find(|operation| operation.operation == *id)
    }

    pub(super) fn operations(&self) -> impl Iterator<Item = &OperationEntry> {
        self.items.iter().filter_map(|item| if let Item::Operation(item) = item { Some(item) } else { None })
    }

    pub(super) fn readback_methods(&self) -> impl Iterator<Item = &ReadbackMethod> {
        self.items.iter().filter_map(|item| if let Item::ReadbackMethod(item) = item { Some(item) } else { None })
    }

    pub(super) fn source(&self, id: &str) -> Option<&Source> {
        self.items.iter().filter_map(Item::as_source).find(|source| source.source_id.as_str() == id)
    }

    /// The rules by which evidence suffices, each with its version.
    pub(super) fn sufficiency_rules(&self) -> impl Iterator<Item = (&str, u32)> {
        let rules = self.items.iter().filter_map(Item::as_rule);
        let sufficiency = rules.filter(|rule| matches!(rule.body, RuleBody::Sufficiency { .. }));
        sufficiency.map(|rule| (rule.rule_id.as_str(), rule.version))
    }

    /// The path of the table that founds what has this id.
    pub(super) fn place_of(&self, id: &str) -> Option<String> {
        let sections = self.file.as_object()?.iter();
        sections.filter_map(|(section, tables)| Some((section, tables.as_array()?))).find_map(|(section, tables)| {
            let index =
                tables.iter().position(|table| table.get(own_id(section)).and_then(Value::as_str) == Some(id))?;
            Some(format!("{section}.{index}"))
        })
    }
}

/// The member that is the id of a section's tables.
pub(super) fn own_id(section: &str) -> &str {
    match section {
        "identity" => "actor_id",
        "source" => "source_id",
        "readback_method" => "method",
        "rule" => "rule_id",
        "policy" => "policy_id",
        "grant" => "grant_id",
        "goal" => "goal_id",
        "constraint" => "constraint_id",
        "claim" => "claim_id",
        "method" => "method_id",
        "declaration" => "declaration_id",
        "obligation" => "obligation_id",
        "reentry" => "reentry_id",
        "appointment" => "issuer",
        "dependency" => "dependency_id",
        other => other,
    }
}

/// The file with every founded thing as it is founded, at the place of the table it was read from.
fn completed(mut raw: Map<String, Value>, founding: &Founding) -> Value {
    let mut sections: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for item in &founding.items {
        sections.entry(item.kind().as_str()).or_default().push(untagged(item));
    }
    sections.insert("declaration", founding.declarations.iter().map(|declaration| json!(declaration)).collect());
    sections.insert("obligation", founding.obligations.iter().map(|(obligation, _)| json!(obligation)).collect());
    // Triggers are founded with their obligations; their tables may stand in any order.
    let triggers: BTreeMap<_, _> = founding
        .obligations
        .iter()
        .flat_map(|(_, reentries)| reentries.iter().map(|reentry| (reentry.reentry_id.to_string(), json!(reentry))))
        .collect();
    let written = raw.get("reentry").and_then(Value::as_array).into_iter().flatten();
    let in_order = written.map(|table| {
        let id = table.get("reentry_id").and_then(Value::as_str).unwrap_or_default();
        triggers.get(id).cloned().unwrap_or(Value::Null)
    });
    sections.insert("reentry", in_order.collect());
    raw.insert("profile".to_owned(), json!(founding.profile));
    raw.extend(sections.into_iter().map(|(section, tables)| (section.to_owned(), Value::Array(tables))));
    Value::Object(raw)
}

/// An item without the word that says which kind it is: the section says so.
fn untagged(item: &Item) -> Value {
    let mut value = json!(item);
    if let Some(members) = value.as_object_mut() {
        members.remove("item");
    }
    value
}

#[derive(Default)]
struct Names(BTreeMap<Kind, BTreeSet<String>>);

impl Names {
    fn put(&mut self, kind: Kind, name: impl ToString) {
        self.0.entry(kind).or_default().insert(name.to_string());
    }

    fn identity(&mut self, identity: &Identity) {
        self.put(Kind::Identity, &identity.actor_id);
        self.put(Kind::Item, &identity.actor_id);
        if identity.roles.contains(&ProducerRole::Participant) {
            self.put(Kind::Participant, &identity.actor_id);
        }
    }

    fn source(&mut self, source: &Source) {
        self.put(Kind::Source, &source.source_id);
        source.change_kinds.iter().for_each(|kind| self.put(Kind::Change, kind));
        if source.emitters.contains(&services::actor(ProducerRole::Observer)) {
            self.put(Kind::ObservedSource, &source.source_id);
        }
    }

    fn item(&mut self, item: &Item) {
        let id = item.id();
        self.put(Kind::Item, &id);
        match item {
            Item::Identity(identity) => self.identity(identity),
            Item::Source(source) => self.source(source),
            Item::ReadbackMethod(_) => self.put(Kind::ReadbackMethod, id),
            Item::Operation(operation) => {
                self.put(Kind::Operation, id);
                self.put(Kind::Capability, &operation.capability);
            }
            Item::Policy(policy) => match policy.body {
                PolicyBody::Refresh { .. } => self.put(Kind::RefreshPolicy, id),
                PolicyBody::Expiry { .. } => self.put(Kind::ExpiryPolicy, id),
                PolicyBody::Deadline { .. } => self.put(Kind::DeadlinePolicy, id),
                PolicyBody::Escalation { .. } => self.put(Kind::EscalationPolicy, id),
            },
            Item::Appointment(_) => self.put(Kind::Appointment, id),
            Item::Constraint(_) => self.put(Kind::Constraint, id),
            Item::Grant(_) => self.put(Kind::Grant, id),
            Item::Claim(claim) => self.put(Kind::Proposition, &claim.proposition.proposition_id),
            Item::Obligation(_) => self.put(Kind::Obligation, id),
            Item::Goal(_)
            | Item::Method(_)
            | Item::Dependency(_)
            | Item::Reentry(_)
            | Item::Restriction(_)
            | Item::Rule(_)
            | Item::Profile(_) => {}
        }
    }
}
