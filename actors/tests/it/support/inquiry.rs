//! A coalition that confers, and participants that speak in it by a script.

use closer_contracts::Digest;
use closer_contracts::canonical;
use closer_contracts::conference::{MoveAnswer, MoveKind};
use closer_contracts::id::Text;
use closer_contracts::item::{Coalition, IdentityKind, Inquiry, Item, Member, Standing};
use closer_contracts::profile::DisclosureRule;
use closer_contracts::refs::{Amounts, ProducerRole};
use closer_contracts::refusal::RefusalCode;
use closer_contracts::work::*;
use closer_protocol::genesis::Founding;
use closer_protocol::incident::{Answer as Withdrawn, ScopedNotice};
use closer_protocol::port::*;
use closer_scenarios::founding::identity;
use closer_scenarios::worker;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What is said to a packet.
type Says<T> = Box<dyn Fn(&Work) -> Result<T, NoAnswer> + Send + Sync>;

/// A participant of a conference.
pub(crate) struct Voice {
    position: Says<WorkResult>,
    moves: Mutex<VecDeque<Says<MoveAnswer>>>,
    /// How long it takes for its position.
    pub(crate) position_ms: AtomicU64,
    /// How long it takes for a move.
    pub(crate) move_ms: AtomicU64,
    /// How often it was asked for a position.
    pub(crate) positions_asked: AtomicU64,
    /// What it says to the notice of a withdrawal, and every notice it was brought.
    pub(crate) copies: Mutex<Option<Withdrawn>>,
    pub(crate) notices: Mutex<Vec<ScopedNotice>>,
    /// The packets that it was asked for a move with.
    pub(crate) turns: Mutex<Vec<Work>>,
}

impl Voice {
    pub(crate) fn new(position: impl Fn(&Work) -> Result<WorkResult, NoAnswer> + Send + Sync + 'static) -> Self {
        Self {
            position: Box::new(position),
            moves: Mutex::default(),
            position_ms: AtomicU64::default(),
            move_ms: AtomicU64::default(),
            positions_asked: AtomicU64::default(),
            copies: Mutex::default(),
            notices: Mutex::default(),
            turns: Mutex::default(),
        }
    }

    /// One that has nothing to say.
    pub(crate) fn quiet() -> Self {
        Self::new(|work| Ok(worker::nothing(work)))
    }

    /// One that proposes to change the plan.
    pub(crate) fn proposing(plan: &'static str) -> Self {
        Self::new(move |work| Ok(proposing(work, plan)))
    }

    /// The same, that makes this move when it is asked next.
    pub(crate) fn moving(self, made: impl Fn(&Work) -> Result<MoveAnswer, NoAnswer> + Send + Sync + 'static) -> Self {
        self.moves.lock().unwrap().push_back(Box::new(made));
        self
    }

    pub(crate) fn takes(self, position_ms: u64, move_ms: u64) -> Self {
        self.position_ms.store(position_ms, Ordering::SeqCst);
        self.move_ms.store(move_ms, Ordering::SeqCst);
        self
    }
}

fn proposing(work: &Work, plan: &str) -> WorkResult {
    let proposition = work.question.subject_refs[0].as_str();
    WorkResult { action_proposals: vec![worker::proposal(proposition, plan)], ..worker::nothing(work) }
}

impl Participant for Voice {
    fn work<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(async move {
            self.positions_asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(self.position_ms.load(Ordering::SeqCst))).await;
            Ok(canonical::to_bytes(&(self.position)(work)?).unwrap().into())
        })
    }

    fn turn<'a>(&'a self, work: &'a Work) -> Pending<'a, Result<Said, NoAnswer>> {
        Box::pin(async move {
            self.turns.lock().unwrap().push(work.clone());
            tokio::time::sleep(Duration::from_millis(self.move_ms.load(Ordering::SeqCst))).await;
            let next = self.moves.lock().unwrap().pop_front();
            match next {
                Some(made) => Ok(canonical::to_bytes(&made(work)?).unwrap().into()),
                None => deferring(work),
            }
        })
    }

    fn withdraw<'a>(&'a self, notice: &'a ScopedNotice) -> Pending<'a, Option<(Withdrawn, Text)>> {
        self.notices.lock().unwrap().push(notice.clone());
        let copies = *self.copies.lock().unwrap();
        Box::pin(std::future::ready(copies.map(|answer| (answer, Text::from("as it says")))))
    }
}

/// A challenge of what the packet shows to be proposed; of the subject itself where nothing is.
pub(crate) fn challenge(work: &Work, reason_class: ReasonClass) -> MoveAnswer {
    let proposed = work.context_items.iter().find_map(|item| {
        let proposal = item.content.0.pointer("/content/action_proposals/0")?.clone();
        let proposal: ActionProposal = serde_json::from_value(proposal).unwrap();
        Some(canonical::digest_of(&proposal).unwrap())
    });
    let subject: Digest = proposed.unwrap_or_else(|| subject_of(work));
    MoveAnswer {
        r#move: MoveKind::Challenge,
        reason: Some("It is not within what was granted.".into()),
        reason_class: Some(reason_class),
        ..MoveAnswer::deferring(work.work_id.clone(), subject)
    }
}

/// The digest of the packet's subject.
pub(crate) fn subject_of(work: &Work) -> Digest {
    let subject = work.question.subject_refs[0].as_str();
    work.context_items.iter().find(|item| item.reference.id.as_str() == subject).unwrap().reference.digest
}

/// A participant that cannot be reached.
pub(crate) fn unreachable() -> NoAnswer {
    NoAnswer::new(RefusalCode::NoAnswer, "it cannot be reached")
}

/// The deployment with a coalition of these members, each named after its role, that confers.
pub(crate) fn with_coalition(mut founding: Founding, roles: &[&str], change: impl FnOnce(&mut Inquiry)) -> Founding {
    let rule = founding.profile.disclosure_rules[0].clone();
    for role in roles {
        let member = identity(role, IdentityKind::Producer, &[ProducerRole::Participant], &["plan.change"]);
        founding.items.push(Item::Identity(member));
        let mut categories = rule.categories.clone();
        categories.push("position".into());
        founding.profile.disclosure_rules.push(DisclosureRule {
            recipient: (*role).into(),
            categories,
            ..rule.clone()
        });
    }
    let mut inquiry = Inquiry {
        subjects: Vec::new(),
        stop: StopCondition { rounds_max: 3, calls_max: 30, time_ms_max: 60_000 },
        seal_within_ms: 30_000,
        allowed_moves: MoveKind::ALL.to_vec(),
        decision_rule_ref: closer_protocol::commit::mechanical_rule(),
        independence_required: false,
        late_counts: false,
    };
    change(&mut inquiry);
    let member = |role: &&str| Member {
        actor: (*role).into(),
        role: (*role).into(),
        context: None,
        model: format!("model-{role}").into(),
        tools: Vec::new(),
        capabilities: Vec::new(),
        alternatives: Vec::new(),
        worst_case: Amounts::default(),
    };
    founding.items.push(Item::Coalition(Coalition {
        coalition_id: "coalition.inquiry".into(),
        version: 1,
        obligations: Vec::new(),
        members: roles.iter().map(member).collect(),
        needs: Vec::new(),
        inquiry: Some(inquiry),
        standing: Standing::Current,
    }));
    founding
}
