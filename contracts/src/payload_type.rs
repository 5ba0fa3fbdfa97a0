//! The twelve payload types and the message map: who may produce which, and who acts on it. Spec: §6.2, DEC-18, DEC-104.

use crate::delta::AdmissionPath;
use crate::envelope::{Body, Envelope};
use crate::fault::Fault;
use crate::refs::ProducerRole;
use crate::refusal::RefusalCode;

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
            // An endorsement of a routine delta belongs to no episode (DEC-27); the other phases do: see the envelope.
            Self::Obligation | Self::Handoff | Self::Briefcase | Self::Reentry | Self::Delta | Self::Adjudication => {
                rule(false, true, false, true)
            }
            Self::Route | Self::Work | Self::Action => rule(false, false, false, false),
            Self::Result => rule(false, false, false, true),
        }
    }

    /// Judges whether a role acts on this type.
    ///
    /// # Errors
    /// `missing_authority`.
    pub fn check_consumer(self, role: ProducerRole) -> Result<(), Fault> {
        match crate::branch!("payload_type.consumer_unmapped", !self.consumers().contains(&role)) {
            true => {
                Err(Fault::new(RefusalCode::MissingAuthority, format!("the role `{role}` does not act on `{self}`")))
            }
            false => Ok(()),
        }
    }
}

/// Judges whether the producer's role may emit this payload; apart from authentication, which establishes the role.
/// A distiller emits ordinary deltas and an issuer urgent ones.
///
/// # Errors
/// `missing_authority`.
pub fn check_producer(envelope: &Envelope) -> Result<(), Fault> {
    let role = envelope.producer.role;
    if crate::branch!("payload_type.producer_unmapped", !envelope.r#type.producers().contains(&role)) {
        let reason = format!("the role `{role}` does not produce `{}`", envelope.r#type);
        return Err(Fault::new(RefusalCode::MissingAuthority, reason).within("producer.role"));
    }
    if let Body::Delta(delta) = &envelope.body {
        let own = match delta.admission_path {
            AdmissionPath::Ordinary => ProducerRole::Distiller,
            AdmissionPath::UrgentRestrictive => ProducerRole::Issuer,
        };
        if crate::branch!("payload_type.path_of_another_role", role != own) {
            let reason = format!("the role `{role}` does not use the path `{}`", delta.admission_path);
            return Err(Fault::new(RefusalCode::MissingAuthority, reason).within("body.admission_path"));
        }
    }
    Ok(())
}
