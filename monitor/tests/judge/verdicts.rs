//! The monitor's verdicts as a ledger: one situation that is admitted, and one change at a time that is not.

use closer_contracts::action::Action;
use closer_contracts::adjudication::{Adjudication, Disposition, Phase};
use closer_contracts::audit::{Delegability, Grant, Revocation};
use closer_contracts::canonical::digest_of;
use closer_contracts::digest::Digest;
use closer_contracts::id::{ActorId, AttemptId, Key, ObligationId};
use closer_contracts::item::{
    Constraint, EffectClass, Identity, IdentityKind, Item, Mechanism, OperationEntry, ParameterBound, ParameterRule,
    ParameterType, ReadbackMethod, RepeatSafety, Standing, Verification,
};
use closer_contracts::profile::Profile;
use closer_contracts::record::{Cursor, Epoch};
use closer_contracts::refs::{
    ActorRef, Amounts, ArtifactRef, AuthenticatedIssuer, EvidenceSnapshot, Plain, ProducerRole, Scope, StateRef,
    SubjectType, Target, TargetPattern, TypedRef, VersionedRef,
};
use closer_contracts::refusal::{Denial, RefusalCode as Code, foremost};
use closer_contracts::shows;
use closer_contracts::time::Timestamp;
use closer_contracts::work::{Comparison, Expectation, Postcondition};
use closer_monitor::{
    Appended, AttemptStanding, ClockStanding, DisclosureStanding, KeyStanding, LastCheck, MovedFact, NotSent, Offered,
    Ownership, OwnershipStanding, Permit, Reservation, Situation, Verdict, judge, release,
};
use closer_state::State;
use serde_json::json;

const NOW: &str = "2026-01-01T12:00:00Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).expect("a timestamp")
}

fn target(account: &str) -> Target {
    Target { r#type: "plan".into(), account: account.into(), address: "service-a".into() }
}

/// Everything a situation is made of, owned, so that one part at a time can be changed.
struct Fixture {
    now: Timestamp,
    clock: ClockStanding,
    profile: Profile,
    identities: Vec<Identity>,
    operation: Option<OperationEntry>,
    readback: Option<ReadbackMethod>,
    grant: Option<Grant>,
    constraints: Vec<Constraint>,
    producer: ActorRef,
    proposer: ActorId,
    obligation: ObligationId,
    action: Action,
    assessed: Option<Action>,
    adjudication: Option<Adjudication>,
    moved: Vec<MovedFact>,
    ownership: Ownership,
    grant_calls: u64,
    key: KeyStanding,
    attempt: AttemptStanding,
    disclosure: DisclosureStanding,
    reservation: Reservation,
}

fn identity(id: &str, roles: &[ProducerRole], capabilities: &[&str]) -> Identity {
    Identity {
        actor_id: id.into(),
        kind: IdentityKind::Producer,
        roles: roles.to_vec(),
        capabilities: capabilities.iter().map(|&capability| capability.into()).collect(),
        mechanisms: vec![Mechanism::Session],
        keys: vec![],
        appointed_by: "user".into(),
        revoked_at: None,
        standing: Standing::Current,
        worst_case: None,
    }
}

fn profile() -> Profile {
    serde_json::from_value(json!({
        "profile_id": "profile-1", "version": 1, "user": "user", "scope": ["space"],
        "answers": (1..=10).map(|n| (format!("q{n}"), json!("Answered."))).collect::<serde_json::Map<_, _>>(),
        "mechanisms": ["session"], "restrictive_authority": "user", "deadline_policy": "policy.deadline",
    }))
    .expect("a profile")
}

fn operation(id: &str, effect_class: EffectClass) -> OperationEntry {
    let contract = Plain(json!({ "kind": "simulated" }));
    let contract_digest = digest_of(&contract).expect("a digest");
    OperationEntry {
        operation: id.into(),
        version: 3,
        text: "Changes the plan.".into(),
        capability: "plans".into(),
        effect_class,
        parameters: vec![
            ParameterRule { name: "plan".into(), r#type: ParameterType::Text, optional: false },
            ParameterRule { name: "seats".into(), r#type: ParameterType::Integer, optional: true },
        ],
        identifying_parameters: vec!["plan".into()],
        target_type: "plan".into(),
        readback_method: VersionedRef { id: "plan.read".into(), version: 1 },
        repeat_safety: RepeatSafety::NotRepeatSafe,
        settle_time_ms: 1000,
        cancellable: false,
        worst_case: Amounts { calls: Some(2), ..Amounts::default() },
        contract,
        contract_digest,
        verification: Verification {
            identity: "provider".into(),
            contract_digest,
            version: 3,
            verified_at: at(NOW),
            method: "pinned".into(),
            expires_at: at("2026-02-01T00:00:00Z"),
        },
        standing: Standing::Current,
        cancel_exposure: None,
    }
}

fn readback() -> ReadbackMethod {
    ReadbackMethod {
        method: "plan.read".into(),
        version: 1,
        source: "service-a".into(),
        target_type: "plan".into(),
        contract: Plain(json!({ "kind": "simulated" })),
        standing: Standing::Current,
    }
}

fn grant() -> Grant {
    Grant {
        grant_id: "grant-1".into(),
        authenticated_issuer: AuthenticatedIssuer {
            identity: "user".into(),
            auth_ref: ArtifactRef { id: "auth-1".into(), digest: Digest::of(b"auth") },
        },
        allowed_operations: vec!["plan.change".into()],
        targets: vec![TargetPattern::exactly(&target("account-1"))],
        parameter_bounds: vec![ParameterBound {
            operation: "plan.change".into(),
            parameter: "seats".into(),
            at_least: Some(1),
            at_most: Some(10),
            one_of: None,
        }],
        resource_bounds: Amounts::default(),
        expiry: at("2026-01-31T00:00:00Z"),
        delegability: Delegability::None,
        revocation: Revocation { may_revoke: vec!["user".into()], revoked_by: None },
    }
}

fn action() -> Action {
    let mut action = Action {
        action_id: "action-1".into(),
        operation: "plan.change".into(),
        target: target("account-1"),
        parameters: [("plan".into(), Plain(json!("basic"))), ("seats".into(), Plain(json!(5)))].into(),
        expected_postcondition: Postcondition {
            id: "p-plan".into(),
            expectations: vec![Expectation {
                field: "plan".into(),
                comparison: Comparison::Equals,
                value: Plain(json!("basic")),
            }],
        },
        authority_ref: "grant-1".into(),
        relevant_semantic_version: 0,
        registry_version: 3,
        idempotency_key: "key-1".into(),
        logical_digest: Digest::of(b""),
        attempt_id: "attempt-1".into(),
        ownership_epoch: 4,
        extensions: None,
    };
    action.logical_digest = action.compute_logical_digest().expect("a digest");
    action
}

fn adjudication(action: &Action, phase: Phase, disposition: Disposition) -> Adjudication {
    Adjudication {
        adjudication_id: "adj-1".into(),
        phase,
        subject: TypedRef {
            id: (&action.action_id).into(),
            digest: action.logical_digest,
            r#type: SubjectType::Action,
        },
        evidence_snapshot: EvidenceSnapshot::of(vec![]).expect("a snapshot"),
        readback_refs: vec![],
        governing_basis: StateRef { version: 0, digest: Digest::of(b"") },
        role_positions: vec![],
        decision_rule_ref: VersionedRef { id: "rule-1".into(), version: 1 },
        dissent: vec![],
        unresolved: vec![],
        disposition,
        extensions: None,
    }
}

impl Fixture {
    fn new() -> Self {
        let action = action();
        Self {
            now: at(NOW),
            clock: ClockStanding::Reliable,
            profile: profile(),
            identities: vec![
                identity("closer.planner", &[ProducerRole::Planner], &[]),
                identity("worker", &[ProducerRole::Participant], &["plans"]),
                identity("user", &[ProducerRole::User], &[]),
                identity("provider", &[], &[]),
            ],
            operation: Some(operation("plan.change", EffectClass::ExternalReversible)),
            readback: Some(readback()),
            grant: Some(grant()),
            constraints: vec![],
            producer: ActorRef { actor_id: "closer.planner".into(), role: ProducerRole::Planner },
            proposer: "worker".into(),
            obligation: "o-1".into(),
            adjudication: Some(adjudication(&action, Phase::PreAction, Disposition::Justified)),
            assessed: Some(action.clone()),
            action,
            moved: vec![],
            ownership: Ownership {
                epoch: 4,
                owner: "worker".into(),
                lease_expiry: None,
                standing: OwnershipStanding::Held,
            },
            grant_calls: 0,
            key: KeyStanding::Unused,
            attempt: AttemptStanding::First,
            disclosure: DisclosureStanding::Released,
            reservation: Reservation::Fits,
        }
    }

    fn state(&self) -> State {
        let mut items: Vec<Item> = self.identities.iter().cloned().map(Item::Identity).collect();
        items.extend(self.readback.clone().map(Item::ReadbackMethod));
        items.extend(self.operation.clone().map(Item::Operation));
        items.extend(self.grant.clone().map(Item::Grant));
        items.extend(self.constraints.iter().cloned().map(Item::Constraint));
        closer_state::genesis(self.profile.clone(), items).expect("a state").1
    }

    fn verdict_on(&self, state: &State) -> Verdict {
        judge(&Situation {
            now: &self.now,
            clock: self.clock,
            state,
            producer: &self.producer,
            proposer: &self.proposer,
            obligation_id: &self.obligation,
            action: &self.action,
            offered: self
                .adjudication
                .as_ref()
                .map(|adjudication| Offered { adjudication, assessed: self.assessed.as_ref() }),
            moved: &self.moved,
            ownership: &self.ownership,
            grant_calls: self.grant_calls,
            key: self.key.clone(),
            attempt: self.attempt.clone(),
            disclosure: self.disclosure.clone(),
            reservation: self.reservation.clone(),
        })
    }

    fn verdict(&self) -> Verdict {
        self.verdict_on(&self.state())
    }

    /// Gives the action other content, with its own digest, assessed as it is now.
    fn with_content(mut self, change: impl FnOnce(&mut Action)) -> Self {
        change(&mut self.action);
        self.action.logical_digest = self.action.compute_logical_digest().expect("a digest");
        self
    }

    fn assessed_anew(mut self) -> Self {
        self.adjudication = Some(adjudication(&self.action, Phase::PreAction, Disposition::Justified));
        self.assessed = Some(self.action.clone());
        self
    }
}

/// The denials of a situation that differs from the admitted one in what `change` does.
fn denials(change: impl FnOnce(&mut Fixture)) -> Vec<Denial> {
    let mut fixture = Fixture::new();
    change(&mut fixture);
    refused(&fixture)
}

fn refused(fixture: &Fixture) -> Vec<Denial> {
    match fixture.verdict() {
        Verdict::Admitted(admission) => panic!("admitted: {admission:?}"),
        Verdict::Refused(denials) => denials,
    }
}

fn codes(denials: &[Denial]) -> Vec<Code> {
    denials.iter().map(|denial| denial.code).collect()
}

/// Exactly one denial, with this code, naming this.
#[track_caller]
fn only(denials: &[Denial], code: Code, offending: &str) {
    assert_eq!(codes(denials), [code], "{denials:?}");
    assert_eq!(denials[0].offending.as_deref(), Some(offending));
}

#[test]
fn an_action_that_nothing_speaks_against_is_admitted() {
    shows!("CP-10.2-01"; by "monitor.producer_current");
    let Verdict::Admitted(admission) = Fixture::new().verdict() else { panic!("refused") };
    assert_eq!(admission.effect_class(), EffectClass::ExternalReversible);
    assert_eq!(admission.worst_case().calls, Some(2));
    assert_eq!(admission.valid_until(), &at(NOW).plus_ms(30_000));
}

/// The quickest of many verdicts, in nanoseconds, in a state with this many grants.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the verdict is timed, it reads no clock")]
fn quickest_ns(grants: usize) -> u128 {
    let fixture = Fixture::new();
    let mut items: Vec<Item> = fixture.identities.iter().cloned().map(Item::Identity).collect();
    items.extend([
        Item::ReadbackMethod(readback()),
        Item::Operation(operation("plan.change", EffectClass::ExternalReversible)),
    ]);
    items.push(Item::Grant(grant()));
    // On both sides of the action's own in id order, so that no walk from either end finds it at once.
    let others = (1..grants).map(|number| format!("{}-{number}", if number % 2 == 0 { "a" } else { "z" }));
    items.extend(others.map(|id| Item::Grant(Grant { grant_id: id.into(), ..grant() })));
    let state = closer_state::genesis(fixture.profile.clone(), items).expect("a state").1;
    let timed = |_| {
        let begun = std::time::Instant::now();
        let verdict = fixture.verdict_on(&state);
        let elapsed = begun.elapsed().as_nanos();
        assert!(matches!(verdict, Verdict::Admitted(_)), "{verdict:?}");
        elapsed
    };
    (0..2000).map(timed).min().expect("a verdict")
}

/// `cargo test --release -p closer-monitor ten_thousand -- --nocapture` says the figures.
#[test]
fn a_verdict_does_not_look_at_ten_thousand_other_grants() {
    let (alone, among) = (quickest_ns(1), quickest_ns(10_000));
    println!("a verdict with 1 grant: {alone} ns, with 10,000 grants: {among} ns");
    assert!(among < 20 * alone.max(100), "{alone} ns with one grant, {among} ns with 10,000");
}

#[test]
fn the_producer_is_a_current_planner_and_nothing_else_is_told() {
    shows!("CP-12-04", "CP-C1-05"; by "monitor.producer_current");
    let unknown = denials(|f| {
        f.producer.actor_id = "somebody".into();
        f.grant = None;
    });
    only(&unknown, Code::Unauthenticated, "somebody");
    only(&denials(|f| f.producer.role = ProducerRole::Participant), Code::Unauthenticated, "closer.planner");
    only(&denials(|f| f.identities[0].standing = Standing::Suspended), Code::Unauthenticated, "closer.planner");
    only(&denials(|f| f.identities[0].revoked_at = Some(at(NOW))), Code::Unauthenticated, "closer.planner");
}

#[test]
fn an_operation_that_is_not_registered_is_refused_whatever_the_grant() {
    shows!("CP-3.3-01"; by "monitor.operation_unregistered");
    assert_eq!(codes(&denials(|f| f.operation = None)), [Code::UnregisteredOperation]);
    assert_eq!(
        codes(&denials(|f| f.operation.as_mut().unwrap().standing = Standing::Retracted)),
        [Code::UnregisteredOperation]
    );
}

#[test]
fn an_expired_registry_entry_is_not_used() {
    shows!("CP-12-11", "CP-3.3-04", "CP-10.2-08"; by "monitor.registry_expired");
    only(
        &denials(|f| f.now = at("2026-02-01T00:00:00Z"))
            .into_iter()
            .filter(|d| d.code != Code::GrantExpired)
            .collect::<Vec<_>>(),
        Code::RegistryExpired,
        "plan.change",
    );
}

#[test]
fn a_contract_other_than_the_verified_one_is_refused() {
    shows!("CP-12-09", "CP-C4-03", "CP-C4-04"; by "monitor.contract_unpinned");
    only(
        &denials(|f| f.operation.as_mut().unwrap().verification.contract_digest = Digest::of(b"other")),
        Code::ContractIncompatible,
        "plan.change",
    );
    only(
        &denials(|f| f.operation.as_mut().unwrap().verification.version = 2),
        Code::ContractIncompatible,
        "plan.change",
    );
}

#[test]
fn an_actor_uses_only_capabilities_it_has_declared() {
    shows!("CP-0-04", "CP-12-06"; by "monitor.capability_undeclared");
    only(&denials(|f| f.identities[1].capabilities = vec!["probes".into()]), Code::CapabilityUndeclared, "plans");
}

#[test]
fn consequential_work_needs_a_complete_profile_and_reading_does_not() {
    shows!("CP-A-01", "CP-A-02"; by "monitor.profile_incomplete");
    let found = denials(|f| drop(f.profile.answers.remove(&Key::from("q4"))));
    only(&found, Code::ProfileIncomplete, "profile");
    assert!(found[0].reason.contains("[4]"), "{}", found[0].reason);
    let mut reading = Fixture::new();
    reading.profile.answers.remove(&Key::from("q4"));
    reading.operation = Some(operation("plan.change", EffectClass::ReadOnly));
    assert!(matches!(reading.verdict(), Verdict::Admitted(_)));
}

#[test]
fn another_target_than_the_assessed_one_is_refused() {
    shows!("CP-4.2-05", "CP-C7-11"; by "monitor.target_differs");
    let fixture = Fixture::new().with_content(|action| action.target = target("account-2"));
    let found = refused(&fixture);
    assert_eq!(foremost(&found).map(|denial| denial.code), Some(Code::TargetMismatch), "{found:?}");
}

#[test]
fn a_changed_parameter_is_not_covered_by_the_assessment() {
    shows!("CP-4.2-06", "CP-4.2-10"; by "monitor.other_subject_assessed");
    let fixture = Fixture::new().with_content(|action| drop(action.parameters.insert("seats".into(), Plain(json!(6)))));
    only(&refused(&fixture), Code::SubjectMismatch, "adj-1");
}

#[test]
fn parameters_follow_the_operations_own_rules() {
    shows!("CP-B-21"; by "monitor.parameter_misfit");
    let other =
        Fixture::new().with_content(|action| drop(action.parameters.insert("colour".into(), Plain(json!("red")))));
    only(&refused(&other.assessed_anew()), Code::SchemaInvalid, "colour");
    let mistyped = Fixture::new().with_content(|action| drop(action.parameters.insert("plan".into(), Plain(json!(1)))));
    only(&refused(&mistyped.assessed_anew()), Code::SchemaInvalid, "plan");
    let missing = Fixture::new().with_content(|action| drop(action.parameters.remove(&Key::from("plan"))));
    only(&refused(&missing.assessed_anew()), Code::SchemaInvalid, "plan");
}

#[test]
fn without_a_grant_no_agreement_confidence_or_goal_permits_anything() {
    shows!("CP-1.2-02", "CP-1.1-12", "CP-4.1-31"; by "monitor.no_such_grant");
    only(&denials(|f| f.grant = None), Code::MissingAuthority, "grant-1");
}

#[test]
fn a_grant_for_reading_does_not_permit_changing() {
    shows!("CP-1-02", "CP-1-01", "CP-C7-16"; by "monitor.operation_not_granted");
    only(
        &denials(|f| f.grant.as_mut().unwrap().allowed_operations = vec!["plan.read".into()]),
        Code::MissingAuthority,
        "grant-1",
    );
}

#[test]
fn a_target_beyond_the_grant_is_out_of_bounds() {
    shows!("CP-C14-15"; by "monitor.target_not_granted");
    only(
        &denials(|f| f.grant.as_mut().unwrap().targets = vec![TargetPattern::exactly(&target("account-9"))]),
        Code::OutOfBounds,
        "grant-1",
    );
}

#[test]
fn a_parameter_beyond_the_grant_is_out_of_bounds() {
    shows!("CP-C7-12", "CP-9-06"; by "monitor.parameter_beyond_grant");
    for seats in [json!(0), json!(11), json!("5")] {
        let beyond =
            Fixture::new().with_content(|action| drop(action.parameters.insert("seats".into(), Plain(seats.clone()))));
        let found = refused(&beyond.assessed_anew());
        assert!(codes(&found).contains(&Code::OutOfBounds), "{seats}: {found:?}");
    }
    for seats in [1, 10] {
        let within =
            Fixture::new().with_content(|action| drop(action.parameters.insert("seats".into(), Plain(json!(seats)))));
        assert!(matches!(within.assessed_anew().verdict(), Verdict::Admitted(_)), "{seats}");
    }
}

#[test]
fn a_grant_for_one_call_permits_one() {
    shows!("CP-C14-15", "CP-C7-12"; by "monitor.grant_used_up");
    let once = |calls: u64| {
        denials(|f| {
            f.grant.as_mut().unwrap().resource_bounds.calls = Some(1);
            f.grant_calls = calls;
        })
    };
    only(&once(1), Code::OutOfBounds, "grant-1");
    only(&once(2), Code::OutOfBounds, "grant-1");
    let mut unused = Fixture::new();
    unused.grant.as_mut().unwrap().resource_bounds.calls = Some(1);
    assert!(matches!(unused.verdict(), Verdict::Admitted(_)));
}

#[test]
fn an_operation_that_nothing_reads_back_is_not_admitted() {
    shows!("CP-A-09"; by "monitor.readback_unregistered");
    only(&denials(|f| f.readback = None), Code::ProfileIncomplete, "plan.read");
}

#[test]
fn an_expired_grant_permits_nothing() {
    shows!("CP-7.3-19"; by "monitor.grant_expired");
    only(&denials(|f| f.grant.as_mut().unwrap().expiry = at(NOW)), Code::GrantExpired, "grant-1");
}

#[test]
fn a_constraint_in_force_holds_though_the_slice_did_not_show_it() {
    shows!("CP-4.3-10"; by "monitor.constraint_violated");
    let constraint = |bounds: Vec<ParameterBound>| Constraint {
        constraint_id: "constraint-1".into(),
        statement: "No more than four seats.".into(),
        scope: Scope(vec!["space".into()]),
        operations: vec!["plan.change".into()],
        targets: vec![],
        bounds,
        standing: Standing::Current,
    };
    let four = ParameterBound {
        operation: "plan.change".into(),
        parameter: "seats".into(),
        at_least: None,
        at_most: Some(4),
        one_of: None,
    };
    only(&denials(|f| f.constraints = vec![constraint(vec![four.clone()])]), Code::Restricted, "constraint-1");
    only(&denials(|f| f.constraints = vec![constraint(vec![])]), Code::Restricted, "constraint-1");
    let five = ParameterBound { at_most: Some(5), ..four };
    let mut within = Fixture::new();
    within.constraints = vec![constraint(vec![five])];
    assert!(matches!(within.verdict(), Verdict::Admitted(_)));
}

#[test]
fn the_registry_version_is_the_one_assessed() {
    shows!("CP-C7-13"; by "monitor.registry_version_moved");
    let moved = Fixture::new().with_content(|action| action.registry_version = 2).assessed_anew();
    only(&refused(&moved), Code::StaleVersion, "plan.change");
}

#[test]
fn an_action_does_not_name_a_state_that_is_not_accepted() {
    shows!("CP-B-19"; by "monitor.semantic_version_ahead");
    let ahead = Fixture::new().with_content(|action| action.relevant_semantic_version = 7).assessed_anew();
    only(&refused(&ahead), Code::StaleVersion, "7");
}

#[test]
fn a_relied_on_fact_that_moved_is_named() {
    shows!("CP-4.2-08", "CP-C9-03"; by "monitor.read_set_moved");
    let moved = MovedFact { fact: "proposition:p-export".into(), change: "it has changed".into() };
    only(&denials(|f| f.moved = vec![moved]), Code::StaleVersion, "proposition:p-export");
}

#[test]
fn content_without_a_pre_action_adjudication_is_unassessed() {
    shows!("CP-6.4-06", "CP-C15-04", "CP-C7-08"; by "monitor.not_justified");
    only(&denials(|f| f.adjudication = None), Code::Unassessed, &action().logical_digest.to_string());
    for disposition in [Disposition::NotJustified, Disposition::Insufficient, Disposition::Deferred] {
        let found = denials(|f| f.adjudication.as_mut().unwrap().disposition = disposition);
        only(&found, Code::Unassessed, "adj-1");
    }
}

#[test]
fn an_adjudication_of_another_phase_admits_nothing() {
    shows!("CP-4.2-12", "CP-C9-04"; by "monitor.wrong_phase");
    for (phase, disposition) in
        [(Phase::PostOutcome, Disposition::Established), (Phase::SemanticCommit, Disposition::Endorsed)]
    {
        let found = denials(|f| f.adjudication = Some(adjudication(&f.action, phase, disposition)));
        only(&found, Code::WrongPhase, "adj-1");
    }
}

#[test]
fn only_the_current_epoch_dispatches() {
    shows!("CP-4.2-07", "CP-6.4-04", "CP-C7-15"; by "monitor.epoch_stale");
    for epoch in [3, 5] {
        let found = denials(|f| f.action.ownership_epoch = epoch);
        only(&found, Code::StaleEpoch, "o-1");
    }
}

#[test]
fn an_expired_lease_is_fenced() {
    shows!("CP-C12-08"; by "monitor.lease_expired");
    only(&denials(|f| f.ownership.lease_expiry = Some(at(NOW))), Code::LeaseExpired, "o-1");
}

#[test]
fn a_key_that_stands_for_other_content_is_refused_even_if_newly_assessed() {
    shows!("CP-6.4-07", "CP-8.2-05"; by "monitor.key_stands_for_other_content");
    only(&denials(|f| f.key = KeyStanding::StandsFor(Digest::of(b"other"))), Code::KeyReuseChangedContent, "key-1");
    let mut same = Fixture::new();
    same.key = KeyStanding::StandsFor(same.action.logical_digest);
    assert!(matches!(same.verdict(), Verdict::Admitted(_)));
}

#[test]
fn an_unsettled_effect_blocks_the_operation_and_target() {
    shows!("CP-C7-09", "CP-8.2-10", "CP-8.2-11"; by "monitor.attempt_refused");
    only(
        &denials(|f| f.attempt = AttemptStanding::Unsettled(AttemptId::from("attempt-0"))),
        Code::OutcomeUnknown,
        "attempt-0",
    );
}

#[test]
fn repetition_needs_a_repeat_safe_operation() {
    shows!("CP-8.2-03"; by "monitor.repeat_safe");
    only(&denials(|f| f.attempt = AttemptStanding::Again), Code::NotRepeatSafe, "plan.change");
    let mut safe = Fixture::new();
    safe.attempt = AttemptStanding::Again;
    safe.operation.as_mut().unwrap().repeat_safety = RepeatSafety::RepeatSafe;
    assert!(matches!(safe.verdict(), Verdict::Admitted(_)));
}

#[test]
fn an_attempt_is_made_once_and_a_confirmed_effect_never_again() {
    shows!("CP-8.2-06"; by "monitor.attempt_refused");
    only(&denials(|f| f.attempt = AttemptStanding::Reused), Code::Duplicate, "attempt-1");
    only(&denials(|f| f.attempt = AttemptStanding::Done(AttemptId::from("attempt-0"))), Code::Duplicate, "attempt-0");
}

#[test]
fn permission_to_act_is_not_permission_to_release() {
    shows!("CP-6.5-03"; by "monitor.inputs_not_released");
    only(&denials(|f| f.disclosure = DisclosureStanding::Denied("item-1".into())), Code::DisclosureDenied, "item-1");
}

#[test]
fn the_whole_units_worst_case_fits_or_it_is_refused() {
    shows!("CP-4.2-09", "CP-C7-14"; by "monitor.budget_exceeded");
    only(
        &denials(|f| f.reservation = Reservation::Exceeds("budget.o-1: calls".into())),
        Code::BudgetExceeded,
        "budget.o-1: calls",
    );
}

#[test]
fn a_route_without_a_worst_case_is_not_admitted_under_a_hard_cap() {
    shows!("CP-8.3-11"; by "monitor.route_uncapped");
    only(&denials(|f| f.reservation = Reservation::Uncapped("tokens".into())), Code::UncappedRoute, "tokens");
}

#[test]
fn a_clock_in_doubt_permits_nothing() {
    shows!("CP-C11-09"; by "monitor.clock_unreliable");
    only(&denials(|f| f.clock = ClockStanding::Unreliable), Code::ClockUnreliable, "clock");
}

#[test]
fn every_failing_check_is_listed_and_the_caller_is_told_the_foremost() {
    shows!("CP-B-14", "CP-6.1-11"; by "monitor.grant_expired");
    let found = denials(|f| {
        f.grant.as_mut().unwrap().expiry = at(NOW);
        f.ownership.epoch = 9;
        f.moved = vec![MovedFact { fact: "claim:c-1".into(), change: "it was suspended".into() }];
    });
    let mut listed = codes(&found);
    listed.sort();
    assert_eq!(listed, [Code::StaleVersion, Code::GrantExpired, Code::StaleEpoch]);
    assert_eq!(foremost(&found).map(|denial| denial.code), Some(Code::GrantExpired));
}

#[test]
fn judging_twice_gives_one_verdict() {
    let mut fixture = Fixture::new();
    fixture.grant.as_mut().unwrap().expiry = at(NOW);
    let state = fixture.state();
    let first = format!("{:?}", fixture.verdict_on(&state));
    assert_eq!(first, format!("{:?}", fixture.verdict_on(&state)));
}

fn permit(valid_from: &Fixture, appended: Appended) -> Permit {
    let Verdict::Admitted(admission) = valid_from.verdict() else { panic!("refused") };
    release(admission, appended)
}

const APPENDED: Appended = Appended { record: Cursor(9), epoch: Epoch(2), restriction_cursor: 5 };

#[test]
fn a_restriction_decided_after_the_intent_stops_the_sending() {
    shows!("CP-7.2-17"; by "monitor.restricted_since");
    let now = at(NOW);
    let permit = permit(&Fixture::new(), APPENDED);
    let last = LastCheck { now: &now, restriction_cursor: 6, epoch: Epoch(2) };
    assert_eq!(permit.check(last).err(), Some(NotSent::Restricted));
}

#[test]
fn a_permit_ends_with_its_time_and_its_epoch() {
    shows!("CP-8.3-17"; by "monitor.permit_expired");
    let late = at(NOW).plus_ms(30_000);
    let last = LastCheck { now: &late, restriction_cursor: 5, epoch: Epoch(2) };
    assert_eq!(permit(&Fixture::new(), APPENDED).check(last).err(), Some(NotSent::Expired));
    let now = at(NOW);
    let last = LastCheck { now: &now, restriction_cursor: 5, epoch: Epoch(3) };
    assert_eq!(permit(&Fixture::new(), APPENDED).check(last).err(), Some(NotSent::Fenced));
    let last = LastCheck { now: &now, restriction_cursor: 5, epoch: Epoch(2) };
    assert!(permit(&Fixture::new(), APPENDED).check(last).is_ok());
}
