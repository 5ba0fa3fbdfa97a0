//! Many at once: reservations that never pass a cap, and triggers that fire once in whatever order things come.

use crate::support::{codes, dispatch, recorded, refused, until_dispatch};
use closer_contracts::RefusalCode as Code;
use closer_contracts::audit::DecisionType;
use closer_contracts::delta::Change;
use closer_contracts::id::{EpisodeId, ObservationStreamId};
use closer_contracts::item::{EffectClass, Item, RepeatSafety};
use closer_contracts::reentry::{
    CapabilityVerified, DependencyVersionChanged, EvidenceAdded, HandoffAccepted, Reentry, TimeReached, TypedPredicate,
    UserDecisionReceived,
};
use closer_contracts::refs::Amounts;
use closer_contracts::shows;
use closer_protocol::entry::{ActivationEntry, Entry};
use closer_protocol::ledger::deployment_budget;
use closer_scenarios::founding::{operation, plan_target, scope};
use closer_scenarios::{Deployment, Space, worker};
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// How many runs; `CLOSER_RUNS` says otherwise.
fn runs(usual: u64) -> u64 {
    std::env::var("CLOSER_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn within_caps(space: &Space) {
    for (dimension, used, reserved, limit) in space.view().ledger.balance(&deployment_budget()) {
        assert!(limit.is_none_or(|limit| used + reserved <= limit), "{used} + {reserved} {dimension} of {limit:?}");
    }
}

#[test]
fn sixteen_that_reserve_at_once_never_pass_a_cap_by_one_unit() {
    shows!("CP-INV-09", "CP-8.3-13"; by "ledger.exceeds");
    for seed in 0..runs(10) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let cap = rng.random_range(1..16);
        let deployment = (1..=16).fold(Deployment::default(), |deployment, number| {
            deployment.with_obligation(&format!("o-{number}"), "service-a")
        });
        let deployment = deployment.with_profile(|profile| {
            profile.budget = Amounts { calls: Some(cap), ..Amounts::default() };
        });
        let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
        recorded(&space.event("service-a", "price").unwrap());
        let mut order: Vec<usize> = (1..=16).collect();
        order.shuffle(&mut rng);
        let mut issued = 0;
        for number in order {
            let episode_id = space.open(&format!("o-{number}")).unwrap();
            let (_, reply) = space.advance(&episode_id).unwrap();
            match reply.refusal() {
                None => issued += 1,
                Some(_) => refused(&reply, Code::BudgetExceeded),
            }
            within_caps(&space);
        }
        assert_eq!(issued, cap, "seed {seed}: each unit reserves one call");
    }
}

#[test]
fn of_sixty_four_that_want_the_last_of_a_budget_one_is_admitted() {
    shows!("CP-INV-09", "CP-A-16"; by "ledger.exceeds");
    let mut entry = operation("plan.change", EffectClass::ExternalReversible, RepeatSafety::RepeatSafe);
    entry.worst_case = Amounts { cost_micros: Some(100_000), currency: Some("EUR".into()), ..entry.worst_case };
    let deployment = (1..=64).fold(Deployment::default().with(Item::Operation(entry)), |deployment, number| {
        deployment.with_obligation(&format!("o-{number}"), "service-a")
    });
    let deployment = deployment.with_profile(|profile| {
        let last = Amounts { cost_micros: Some(100_000), currency: Some("EUR".into()), ..Amounts::default() };
        (profile.budget, profile.limits.fan_out_max) = (last, 64);
    });
    let mut space = Space::found(&deployment, worker::proposes("basic")).unwrap();
    space.sends_at_once = false;
    recorded(&space.event("service-a", "price").unwrap());
    let ready: Vec<(EpisodeId, _)> = (1..=64)
        .map(|number| {
            let episode_id = space.open(&format!("o-{number}")).unwrap();
            let payload_id = until_dispatch(&mut space, &episode_id);
            (episode_id, payload_id)
        })
        .collect();
    let replies: Vec<_> = ready.iter().map(|(_, payload_id)| dispatch(&mut space, payload_id)).collect();
    assert_eq!(replies.iter().filter(|reply| reply.refusal().is_none()).count(), 1);
    assert!(replies.iter().skip(1).all(|reply| codes(reply).contains(&Code::BudgetExceeded)));
    within_caps(&space);
}

/// What a trigger can wait for.
#[derive(Debug, Clone, Copy)]
enum Leaf {
    Evidence,
    Dependency,
    Decision,
    Capability,
    Handoff,
    Time,
}

/// What happens, in an order of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Happens {
    Registered,
    Awaited,
    Repeated,
    Elsewhere,
}

/// A space in which a trigger on `o-1` is registered and what it waits for happens, twice, among other things.
struct Run {
    space: Space,
    leaf: Leaf,
    waits: TypedPredicate,
    decision: closer_contracts::id::DecisionId,
    handoff: closer_contracts::id::HandoffId,
}

impl Run {
    fn of(leaf: Leaf) -> Self {
        let deployment = Deployment::default().with_obligation("o-2", "service-b");
        let mut space = Space::found(&deployment, worker::proposes("large")).unwrap();
        space.world.set(&plan_target(), "plan", "small");
        recorded(&space.observe(&plan_target(), Some("o-2")).unwrap());
        recorded(&space.event("service-b", "price").unwrap());
        space.run().unwrap();
        let decision = space.view().waiting.iter().next().expect("a packet").clone();
        let contract = space.contract(&[], &[], &[]).unwrap();
        let terms = space.terms("o-2", "worker", &contract).unwrap();
        let handoff = terms.handoff_id.clone();
        recorded(&space.offer(terms).unwrap());
        let stream: ObservationStreamId = space.view().observed.keys().next().expect("a stream").clone();
        let operation = space.view().state.operation(&"plan.change".into()).expect("the operation").clone();
        let grant = space.view().state.item(closer_contracts::item::ItemKind::Grant, &"grant-1".into());
        let waits = match leaf {
            Leaf::Evidence => TypedPredicate::EvidenceAdded(EvidenceAdded {
                scope_ref: scope(),
                permitted_source_refs: vec!["service-a".into()],
                after_cursor: [(stream, 1)].into(),
            }),
            Leaf::Dependency => TypedPredicate::DependencyVersionChanged(DependencyVersionChanged {
                dependency_ref: "grant-1".into(),
                compared_version: grant.expect("the grant").digest,
            }),
            Leaf::Decision => TypedPredicate::UserDecisionReceived(UserDecisionReceived {
                decision_ref: decision.clone(),
                required_decision_class: DecisionType::Rejection,
            }),
            Leaf::Capability => TypedPredicate::CapabilityVerified(CapabilityVerified {
                capability_ref: operation.capability.clone(),
                contract_version: 2,
            }),
            Leaf::Handoff => TypedPredicate::HandoffAccepted(HandoffAccepted {
                handoff_ref: handoff.clone(),
                recipient_ref: "worker".into(),
                contract_digest: contract.digest,
                ownership_epoch: 1,
            }),
            Leaf::Time => TypedPredicate::TimeReached(TimeReached { at: space.moment().now.plus_ms(60_000) }),
        };
        Self { space, leaf, waits, decision, handoff }
    }

    fn take(&mut self, happens: Happens, expires: bool) {
        match happens {
            Happens::Registered => self.register(expires),
            Happens::Awaited => self.awaited(),
            Happens::Repeated => self.repeated(),
            Happens::Elsewhere => recorded(&self.space.event("service-c", "price").unwrap()),
        }
    }

    fn register(&mut self, expires: bool) {
        let kept = self.space.view().state.reentries_of(&"o-1".into()).next().expect("the founding trigger").clone();
        let expires_at = expires.then(|| self.space.moment().now.plus_ms(1));
        let waiting =
            Reentry { reentry_id: "reentry-waiting".into(), predicate: self.waits.clone(), expires_at, ..kept.clone() };
        let reentries = vec![kept, Reentry { deduplication_key: "waiting".into(), ..waiting }];
        let change = Change::SetTriggers { obligation_id: "o-1".into(), reentries, trigger_gap: None };
        self.commit(vec![change], false);
        if expires {
            self.space.pass(1).unwrap();
        }
    }

    fn commit(&mut self, changes: Vec<Change>, instructed: bool) {
        let authorities = if instructed { vec![self.space.instruct(&changes).unwrap()] } else { Vec::new() };
        let delta = crate::support::delta(&mut self.space, changes, Vec::new(), authorities);
        recorded(&crate::support::propose(&mut self.space, delta.clone()));
        let endorsed = closer_contracts::adjudication::Disposition::Endorsed;
        recorded(&crate::support::endorse(&mut self.space, &delta, endorsed));
        recorded(&crate::support::commit(&mut self.space, &delta));
    }

    fn awaited(&mut self) {
        let space = &mut self.space;
        match self.leaf {
            Leaf::Evidence => recorded(&space.observe(&plan_target(), Some("o-2")).unwrap()),
            Leaf::Dependency => {
                let revoked = closer_contracts::audit::RestrictiveAction::RevokeGrant("grant-1".into());
                recorded(&space.restrict("issuer-1", revoked).unwrap());
            }
            Leaf::Decision => recorded(&space.answer(&self.decision, DecisionType::Rejection).unwrap()),
            Leaf::Capability => self.verify_again(),
            Leaf::Handoff => {
                let consent = space.consent_to(&self.handoff).unwrap();
                recorded(&space.consent(consent, "worker").unwrap());
            }
            Leaf::Time => space.pass(60_000).unwrap(),
        }
    }

    /// The operation's entry is revised, with a verification of its second version.
    fn verify_again(&mut self) {
        let kind = closer_contracts::item::ItemKind::Operation;
        let accepted = self.space.view().state.item(kind, &"plan.change".into()).expect("the operation").clone();
        let Item::Operation(mut entry) = accepted.item else { unreachable!("an operation") };
        (entry.version, entry.verification.version) = (2, 2);
        let item = Box::new(Item::Operation(entry));
        self.commit(vec![Change::Revise { item, replaces: accepted.digest }], true);
    }

    /// What was awaited comes again, or more time passes.
    fn repeated(&mut self) {
        let space = &mut self.space;
        match self.leaf {
            Leaf::Handoff => {
                if let Ok(consent) = space.consent_to(&self.handoff) {
                    let _again = space.consent(consent, "worker").unwrap();
                }
            }
            Leaf::Decision => {
                let _again = space.answer(&self.decision, DecisionType::Rejection).unwrap();
            }
            Leaf::Evidence | Leaf::Dependency | Leaf::Capability | Leaf::Time => space.pass(1).unwrap(),
        }
    }

    fn fired(&self) -> usize {
        let fired = |entry: &(String, Entry)| {
            matches!(&entry.1, Entry::Activation(ActivationEntry::Fired(fired))
                if fired.cause.reentry_id == Some("reentry-waiting".into()))
        };
        self.space.entries().unwrap().iter().filter(|entry| fired(entry)).count()
    }
}

const LEAVES: [Leaf; 6] =
    [Leaf::Evidence, Leaf::Dependency, Leaf::Decision, Leaf::Capability, Leaf::Handoff, Leaf::Time];

#[test]
fn what_a_trigger_waits_for_fires_it_once_whether_it_comes_before_or_after() {
    shows!("CP-C11-20"; by "matching.trigger_satisfied");
    for seed in 0..runs(4) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        for leaf in LEAVES {
            let mut order = vec![Happens::Registered, Happens::Awaited, Happens::Elsewhere];
            order.shuffle(&mut rng);
            let after = order.iter().position(|happens| *happens == Happens::Awaited).expect("it happens") + 1;
            order.insert(rng.random_range(after..=order.len()), Happens::Repeated);
            let mut run = Run::of(leaf);
            for happens in &order {
                run.take(*happens, false);
            }
            run.space.pass(0).unwrap();
            assert_eq!(run.fired(), 1, "seed {seed}, {leaf:?}: {order:?}");
        }
    }
}

#[test]
fn a_trigger_that_has_expired_fires_not_at_all() {
    shows!("CP-7.3-17", "CP-C11-19"; by "matching.trigger_expired");
    for leaf in LEAVES {
        let mut run = Run::of(leaf);
        run.take(Happens::Registered, true);
        run.take(Happens::Awaited, true);
        assert_eq!(run.fired(), 0, "{leaf:?}");
        let view = run.space.view();
        assert!(view.state.obligation(&"o-1".into()).expect("the obligation").status.is_open(), "nothing closes by it");
        assert!(view.state.reentry(&"reentry-waiting".into()).is_none(), "and it is taken off");
    }
}
