//! A small space under test: a view that is only ever changed by folding entries, as the sequence folds them.

use closer_contracts::audit::{DecisionType, UserDecision};
use closer_contracts::delta::{AdmissionPath, Change, Delta};
use closer_contracts::envelope::{Body, Payload};
use closer_contracts::event::{Certainty, Event, Facet};
use closer_contracts::evidence::Evidence;
use closer_contracts::example::{self, Example, Extent};
use closer_contracts::handoff::AcceptanceReceipt;
use closer_contracts::id::{ArtifactId, EvidenceId, Id, Key, PayloadId};
use closer_contracts::item::{
    Identity, IdentityKind, Item, OperationEntry, Policy, PolicyBody, Rule, RuleBody, Source, Standing,
};
use closer_contracts::obligation::{
    AssessmentStatus, Condition, Gap, Obligation, ObligationDependency, ObligationStatus, Origin, TriggerGap, Watch,
};
use closer_contracts::profile::Profile;
use closer_contracts::reentry::{EvidenceAdded, Reentry, TimeReached, TypedPredicate};
use closer_contracts::refs::{Amounts, ArtifactRef, AuthenticatedIssuer, Scope, SourceRef, VersionedRef};
use closer_contracts::work::TargetVersion;
use closer_contracts::{Digest, Timestamp};
use closer_monitor::ClockStanding;
use closer_protocol::entry::{ActivationEntry, ArtifactBody, Fired, Notice, NoticeKind, payload_ref};
use closer_protocol::{Entry, Moment, View};
use closer_state::{Commit, Derivation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Minute `minutes` of the day under test.
pub(crate) fn minute(minutes: i64) -> Timestamp {
    let dawn = Timestamp::parse("2026-01-01T00:00:00Z").expect("a timestamp");
    Timestamp::from_unix_ms(dawn.unix_ms() + minutes * 60_000)
}

/// That minute, by a clock that can be trusted.
pub(crate) fn at(minutes: i64) -> Moment {
    Moment { now: minute(minutes), clock: ClockStanding::Reliable }
}

/// That minute, by a clock that cannot.
pub(crate) fn doubtful(minutes: i64) -> Moment {
    Moment { now: minute(minutes), clock: ClockStanding::Unreliable }
}

pub(crate) fn scope(path: &[&str]) -> Scope {
    Scope(path.iter().map(|part| Id::from(*part)).collect())
}

pub(crate) fn origin() -> ArtifactRef {
    ArtifactRef { id: "declaration-1".into(), digest: Digest::of(b"declaration-1") }
}

fn identity(actor: &str, kind: IdentityKind) -> Item {
    Item::Identity(Identity {
        actor_id: actor.into(),
        kind,
        roles: Vec::new(),
        capabilities: Vec::new(),
        mechanisms: Vec::new(),
        keys: Vec::new(),
        appointed_by: "user-1".into(),
        revoked_at: None,
        standing: Standing::Current,
        worst_case: None,
    })
}

pub(crate) fn source(id: &str, path: &[&str]) -> Item {
    Item::Source(Source {
        source_id: id.into(),
        emitters: vec!["watcher".into()],
        scope: scope(path),
        change_kinds: vec!["changed".into(), "replaced".into()],
        standing: Standing::Current,
    })
}

pub(crate) fn rule(id: &str, version: u32, body: RuleBody) -> Rule {
    Rule { rule_id: id.into(), version, body, standing: Standing::Current }
}

pub(crate) fn policy(id: &str, body: PolicyBody) -> Policy {
    Policy { policy_id: id.into(), version: 1, body, standing: Standing::Current }
}

pub(crate) const ALL_FACETS: [Facet; 4] = [Facet::Entity, Facet::Scope, Facet::ChangeKind, Facet::Evidence];

/// One supporting source, of any age and kind.
pub(crate) fn lenient() -> RuleBody {
    RuleBody::Sufficiency {
        distinct_sources_min: 1,
        age_ms_max: None,
        accepts_unknown_target_version: true,
        observation_types: Vec::new(),
        shown: None,
    }
}

/// A space with a user, an owner, three sources and the rules and policies that the tests cite.
pub(crate) fn items() -> Vec<Item> {
    vec![
        identity("user-1", IdentityKind::User),
        identity("owner", IdentityKind::Producer),
        identity("watcher", IdentityKind::Producer),
        source("probe", &["shop", "export"]),
        source("second", &["shop", "export"]),
        source("elsewhere", &["bank"]),
        Item::Rule(rule("matching", 1, RuleBody::Matching { facets: ALL_FACETS.to_vec() })),
        Item::Rule(rule("sufficiency", 1, lenient())),
        Item::Policy(policy("rearm", PolicyBody::Refresh { rearm: true, after_ms: Some(3_600_000) })),
        Item::Policy(policy("consume", PolicyBody::Refresh { rearm: false, after_ms: None })),
        Item::Policy(policy(
            "replace",
            PolicyBody::Expiry { replace_for_ms: Some(3_600_000), review_within_ms: 60_000 },
        )),
        Item::Policy(policy("gap", PolicyBody::Expiry { replace_for_ms: None, review_within_ms: 600_000 })),
        Item::Policy(policy("deadline", PolicyBody::Deadline { escalate_to: "owner".into() })),
    ]
}

/// The space under test.
pub(crate) struct World {
    pub(crate) view: View,
    pub(crate) entries: Vec<Entry>,
    pub(crate) now: Timestamp,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(items())
    }

    pub(crate) fn of(items: Vec<Item>) -> Self {
        let profile = Profile { user: "user-1".into(), version: 1, ..Profile::example(Extent::Minimal) };
        let (genesis, _) = closer_state::genesis(profile, items).expect("a founded space");
        let mut world = Self { view: View::default(), entries: Vec::new(), now: minute(0) };
        world.fold(Entry::Genesis(Arc::new(genesis)));
        world
    }

    pub(crate) fn fold(&mut self, entry: Entry) {
        self.view.fold(&entry, &self.now).expect("the entry folds");
        self.entries.push(entry);
    }

    /// Commits changes that are already endorsed, under an authority that was checked.
    pub(crate) fn commit(&mut self, changes: Vec<Change>) -> Arc<Commit> {
        let authority = ArtifactRef { id: "authority".into(), digest: Digest::of(b"authority") };
        let delta = Delta {
            delta_id: format!("delta-{}", self.view.state.reference().version).as_str().into(),
            parent_state: self.view.state.reference(),
            changes,
            support_relations: Vec::new(),
            dependency_updates: Vec::new(),
            required_authority_refs: vec![closer_contracts::delta::AuthorityRef {
                kind: closer_contracts::delta::AuthorityKind::Declaration,
                reference: authority.clone(),
            }],
            admission_path: AdmissionPath::Ordinary,
            proposal_digest: Digest::of(b""),
            extensions: None,
        }
        .sealed()
        .expect("a delta");
        let mut derivation = Derivation::at(self.now.clone());
        derivation.origins = vec![origin()];
        derivation.authorities = vec![authority];
        derivation.closing = delta
            .changes
            .iter()
            .map(|change| closer_contracts::id::ObligationId::new(change.subject().1.as_str()))
            .collect();
        let (commit, _) = closer_state::propose(&self.view.state, delta, &derivation).expect("an admissible delta");
        let commit = Arc::new(commit);
        self.fold(Entry::Commit(commit.clone()));
        commit
    }

    pub(crate) fn admit(&mut self, obligation: Obligation, reentries: Vec<Reentry>) -> Arc<Commit> {
        self.commit(vec![Change::AdmitObligation { obligation: Box::new(obligation), reentries }])
    }

    pub(crate) fn close(&mut self, obligation: &str) {
        self.commit(vec![Change::SetStatus {
            obligation_id: obligation.into(),
            status: ObligationStatus::Withdrawn,
            successor: None,
            reason: "no longer wanted".into(),
        }]);
    }

    pub(crate) fn revise(&mut self, item: Item) -> Arc<Commit> {
        let replaces = self.view.state.item(item.kind(), &item.id()).expect("an accepted item").digest;
        self.commit(vec![Change::Revise { item: Box::new(item), replaces }])
    }

    /// Records a payload under this id; what its envelope lacks is filled in.
    pub(crate) fn payload(&mut self, id: &str, body: impl Into<Body>) -> Arc<Payload> {
        let mut envelope = example::envelope(body.into(), Extent::Minimal);
        envelope.payload_id = PayloadId::from(id);
        let payload = Arc::new(Payload::seal(envelope).expect("a payload"));
        self.fold(Entry::Payload(payload.clone()));
        payload
    }

    /// Records an observation and gives the reference that cites it.
    pub(crate) fn observe(&mut self, evidence: Evidence) -> ArtifactRef {
        let id = evidence.evidence_id.clone();
        let payload = self.payload(&format!("pl-{id}"), evidence);
        ArtifactRef { id: ArtifactId::new(id.as_str()), digest: payload.content_digest() }
    }

    pub(crate) fn artifact(&mut self, body: impl Into<ArtifactBody>) -> Entry {
        let entry = Entry::Artifact(Arc::new(body.into()));
        self.fold(entry.clone());
        entry
    }

    /// Records that a trigger fired, as the sequence does.
    pub(crate) fn take_up(&mut self, fired: Fired) {
        self.fold(Entry::Activation(ActivationEntry::Fired(fired)));
    }

    /// Records a notice, as the sequence does: once per key.
    pub(crate) fn tell(&mut self, notice: Notice) {
        assert!(!self.view.notices.contains_key(&notice.key), "{} was told before", notice.key);
        self.fold(Entry::Notice(notice));
    }

    /// The trace of a packet version: records it and gives its reference as decisions cite it.
    pub(crate) fn packet(&mut self, payload_id: &str, packet: closer_contracts::briefcase::Briefcase) -> ArtifactRef {
        let id = ArtifactId::new(packet.decision_id.as_str());
        let payload = self.payload(payload_id, packet);
        ArtifactRef { id, digest: payload.content_digest() }
    }

    /// The user answers a version of a packet.
    pub(crate) fn decide(
        &mut self,
        id: &str,
        packet: &ArtifactRef,
        decision_type: DecisionType,
        issuer: &str,
    ) -> Entry {
        self.artifact(UserDecision {
            decision_id: id.into(),
            briefcase_ref: packet.clone(),
            selected_option_or_instruction: "allow".into(),
            authenticated_issuer: AuthenticatedIssuer { identity: issuer.into(), auth_ref: origin() },
            issued_at: self.now.clone(),
            evidence_version: Digest::of(b"seen"),
            decision_type,
            amendment: None,
        })
    }
}

pub(crate) fn notice(key: &str) -> Notice {
    Notice { kind: NoticeKind::Overdue, key: Key::from(key), owner: None, subjects: Vec::new(), text: "told".into() }
}

pub(crate) fn acceptance(handoff: &str, recipient: &str, contract: &[u8], epoch: u64) -> AcceptanceReceipt {
    AcceptanceReceipt {
        receipt_id: "accepted-1".into(),
        handoff_ref: handoff.into(),
        recipient_ref: recipient.into(),
        contract_digest: Digest::of(contract),
        ownership_epoch: epoch,
        accepted_at: minute(1),
    }
}

/// An obligation that waits for `reentries`, or whose gap is reviewed at noon where there are none.
pub(crate) fn obligation(id: &str, reentries: &[Reentry]) -> Obligation {
    let gap = TriggerGap {
        reason: "nothing is armed".into(),
        responsible_owner: "owner".into(),
        review_predicate: TypedPredicate::TimeReached(TimeReached { at: minute(720) }),
    };
    Obligation {
        obligation_id: id.into(),
        origin: Origin::Declaration(origin()),
        scope: scope(&["shop"]),
        gap: Gap { text: "is the export preserved?".into(), propositions: vec!["p-export".into()] },
        resolution_conditions: vec![Condition {
            id: format!("condition-{id}").as_str().into(),
            proposition: "p-export".into(),
            evidence_rule_ref: VersionedRef { id: "sufficiency".into(), version: 1 },
            assessment_status: AssessmentStatus::Unassessed,
        }],
        dependencies: Vec::new(),
        status: ObligationStatus::Active,
        responsible_owner: "owner".into(),
        authority_boundary: Vec::new(),
        closure_authority: "user-1".into(),
        reentry_refs: reentries.iter().map(|reentry| reentry.reentry_id.clone()).collect(),
        trigger_gap: reentries.is_empty().then_some(gap),
        extensions: None,
    }
}

pub(crate) fn reentry(id: &str, obligation: &str, predicate: TypedPredicate) -> Reentry {
    Reentry {
        reentry_id: id.into(),
        obligation_id: obligation.into(),
        predicate,
        event_sources: Vec::new(),
        eligible_work: Vec::new(),
        resource_posture: Amounts::default(),
        deduplication_key: id.into(),
        expires_at: None,
        refresh_policy_ref: "rearm".into(),
        expiry_policy_ref: "replace".into(),
        extensions: None,
    }
}

pub(crate) fn watch(id: &str, entity: &str, path: &[&str], kinds: &[&str], evidence: &[&str]) -> ObligationDependency {
    ObligationDependency {
        dependency_id: id.into(),
        watch: Watch::Entity {
            entity_ref: entity.into(),
            scope: scope(path),
            change_kinds: kinds.iter().map(|kind| (*kind).into()).collect(),
            evidence_ids: evidence.iter().map(|id| Id::from(*id)).collect(),
        },
    }
}

pub(crate) fn event(id: &str, from: &str, entity: &str, kind: &str, evidence_refs: &[ArtifactRef]) -> Event {
    Event {
        event_id: id.into(),
        source: SourceRef { source_id: from.into() },
        observed_at: minute(1),
        received_at: minute(2),
        entity_ref: entity.into(),
        change_kind: kind.into(),
        evidence_refs: evidence_refs.to_vec(),
        deduplication_key: id.into(),
        certainty: Certainty::Observed,
        extensions: None,
    }
}

/// Observation `number` of a stream, by a source.
pub(crate) fn observation(id: &str, from: &str, stream: &str, number: u64) -> Evidence {
    let mut evidence = Evidence::example(Extent::Minimal);
    evidence.evidence_id = EvidenceId::from(id);
    evidence.source = SourceRef { source_id: from.into() };
    evidence.observed_at = minute(1);
    evidence.target_binding.observation_sequence_ref = stream.into();
    evidence.target_binding.observation_version = number;
    evidence.target_binding.target_version = TargetVersion::Known("release-7".into());
    evidence.observation.r#type = Key::from("probe");
    evidence.limitations = vec!["as observed once".into()];
    evidence
}

/// Evidence of the `probe` source within the shop, after a cursor of the stream `probes`.
pub(crate) fn added(after: u64) -> EvidenceAdded {
    EvidenceAdded {
        scope_ref: scope(&["shop"]),
        permitted_source_refs: vec!["probe".into()],
        after_cursor: BTreeMap::from([("probes".into(), after)]),
    }
}

pub(crate) fn at_minute(minutes: i64) -> TypedPredicate {
    TypedPredicate::TimeReached(TimeReached { at: minute(minutes) })
}

/// A registered operation that gives a capability at a version, verified until a minute of the day.
pub(crate) fn operation(id: &str, capability: &str, version: u32, until: i64) -> OperationEntry {
    let mut entry = OperationEntry::example(Extent::Minimal);
    entry.operation = id.into();
    entry.version = version;
    entry.capability = capability.into();
    entry.verification.version = version;
    entry.verification.contract_digest = entry.contract_digest;
    entry.verification.expires_at = minute(until);
    entry.verification.identity = "owner".into();
    entry
}

/// The reference of the event's payload after recording it.
pub(crate) fn event_ref(payload: &Payload) -> ArtifactRef {
    payload_ref(payload)
}
