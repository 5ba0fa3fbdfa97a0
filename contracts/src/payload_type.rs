//! The twelve payload types and the message map: who may produce which, and who acts on it. Spec: §6.2, DEC-18, DEC-104.

use crate::refs::ProducerRole;

crate::words! {
    /// The closed set of payload types (§6.2).
    pub enum PayloadType {
        /// What changed.
        Event = "EVENT",
        /// A gap and its resolution conditions.
        Obligation = "OBLIGATION",
        /// Actors, capabilities, allocation.
        Route = "ROUTE",
        /// A bounded question.
        Work = "WORK",
        /// Its answer.
        Result = "RESULT",
        /// A typed operation to be judged.
        Action = "ACTION",
        /// A target-bound observation.
        Evidence = "EVIDENCE",
        /// A phase-bound judgment.
        Adjudication = "ADJUDICATION",
        /// Immutable proposed changes.
        Delta = "DELTA",
        /// A typed trigger.
        Reentry = "REENTRY",
        /// A transfer of responsibility.
        Handoff = "HANDOFF",
        /// A judgment for the user.
        Briefcase = "BRIEFCASE",
    }
}

/// Which lineage members of the envelope may be null or empty for a type (DEC-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineageRule {
    /// Whether `obligation_ids` may be empty.
    pub obligations_optional: bool,
    /// Whether `episode_id` may be null.
    pub episode_optional: bool,
    /// Whether `semantic_basis` may be null.
    pub basis_optional: bool,
    /// Whether `budget_ref` may be null: false for what consumes resources.
    pub budget_optional: bool,
}

const fn rule(obligations: bool, episode: bool, basis: bool, budget: bool) -> LineageRule {
    LineageRule {
        obligations_optional: obligations,
        episode_optional: episode,
        basis_optional: basis,
        budget_optional: budget,
    }
}

impl PayloadType {
    /// The roles that may emit this type.
    #[must_use]
    pub const fn producers(self) -> &'static [ProducerRole] {
        use ProducerRole as R;
        match self {
            Self::Event | Self::Evidence => &[R::Observer],
            Self::Obligation | Self::Action => &[R::Planner],
            Self::Route => &[R::Router],
            Self::Work | Self::Handoff | Self::Briefcase => &[R::Coordinator],
            Self::Result => &[R::Participant],
            Self::Adjudication => &[R::Assessor],
            Self::Delta => &[R::Distiller, R::Issuer],
            Self::Reentry => &[R::Scheduler, R::Assessor],
        }
    }

    /// The roles that act on this type. Delivery to any other changes nothing.
    #[must_use]
    pub const fn consumers(self) -> &'static [ProducerRole] {
        use ProducerRole as R;
        match self {
            Self::Event | Self::Reentry => &[R::Matcher],
            Self::Obligation => &[R::Semantic, R::Scheduler],
            Self::Route => &[R::Coordinator],
            Self::Work => &[R::Participant],
            Self::Result | Self::Evidence => &[R::Assessor],
            Self::Action => &[R::Monitor],
            Self::Adjudication => &[R::Planner, R::Distiller],
            Self::Delta => &[R::Semantic],
            Self::Handoff => &[R::Participant, R::Ownership],
            Self::Briefcase => &[R::User],
        }
    }

    /// Which lineage it may lack.
    #[must_use]
    pub const fn lineage(self) -> LineageRule {
        match self {
            Self::Event | Self::Evidence => rule(true, true, true, true),
            Self::Obligation | Self::Handoff | Self::Briefcase | Self::Reentry | Self::Delta => {
                rule(false, true, false, true)
            }
            Self::Route | Self::Work | Self::Action => rule(false, false, false, false),
            Self::Result | Self::Adjudication => rule(false, false, false, true),
        }
    }
}
