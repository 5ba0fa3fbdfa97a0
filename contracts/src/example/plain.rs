//! Contracts whose parts are valid as they are.

use super::{Example, Extent, Parts};

macro_rules! plain {
    ($($module:ident { $($name:ident),+ $(,)? })+) => {$($(
        impl Example for crate::$module::$name {
            fn example(extent: Extent) -> Self {
                Self::parts(extent)
            }
        }
    )+)+};
}

plain! {
    refs { StateRef, ArtifactRef, VersionedRef, ActorRef, SourceRef, Target, TypedValue, AuthenticatedIssuer }
    envelope { DisclosureRef }
    event { Event, Rationale }
    obligation { Condition, TriggerGap, Gap, ObligationDependency }
    route { CapabilityContractRef, RoleAssignment, CapabilityGap, Route }
    work {
        Question, Proposition, ProposedClaim, Expectation, ActionProposal, ValidAt, EvidenceRelation, Objection,
        Unresolved, Work, WorkResult,
    }
    evidence { Evidence, TargetBinding, Readback }
    adjudication { RolePosition, Dissent }
    conference { EvidenceScope, Seat, Follows }
    review { Reviewer, SupportingMessage, ReviewReceipt }
    delta { AuthorityRef }
    reentry {
        EvidenceAdded, DependencyVersionChanged, UserDecisionReceived, CapabilityVerified, HandoffAccepted,
        TimeReached, Reentry, PredicateVersion, EvaluationRecord,
    }
    handoff { Handoff, HandoffConsent, ResponsibilityContract, AcceptanceReceipt }
    briefcase { Recommendation, Alternative, GrantProposal, WhileWaiting }
    audit {
        DisclosureReceipt, DeclaredGoal, EffectivePeriod, InvalidatedItem, InvalidatedDependencies,
        UrgentDetails, ReconciliationReceipt, Confession, IncidentAttempt, RestrictionStatement,
    }
    item {
        Goal, ParameterBound, Constraint, Claim, Dependency, Restriction, ParameterRule, Verification, ReadbackMethod,
        Identity, Source, Rule, Policy,
    }
}
