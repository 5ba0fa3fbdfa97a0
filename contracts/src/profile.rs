//! The deployment profile: ten answers and the limits that go with them. Spec: Appendix A, DEC-103.
//!
//! The profile is one accepted item; the registry entries, rules, policies and appointments it publishes are items of
//! their own. It is written by hand as TOML, so members with a sane default may be left out.

use crate::contract::Check;
use crate::fault::Fault;
use crate::id::{ActorId, CategoryId, ChangeKindId, EntityId, Key, PolicyId, ProfileId, PurposeId, SourceId, Text};
use crate::item::{Mechanism, Standing};
use crate::people::People;
use crate::refs::{Amounts, Scope};
use crate::refusal::RefusalCode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How many questions a profile answers (Appendix A).
pub const QUESTIONS: u8 = 10;

/// Changes that restrict at once, and which issuer's authority they carry (DEC-24).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestrictiveEvent {
    /// The kind of change.
    pub change_kind: ChangeKindId,
    /// The source it must come from.
    pub source: SourceId,
    /// The entity that it must be about; any where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_ref: Option<EntityId>,
    /// The appointed issuer that the source speaks for.
    pub issuer: ActorId,
    /// What it restricts.
    pub action: crate::audit::RestrictiveAction,
    /// Why, for the receipt.
    pub reason: Text,
}

/// What a recipient may get for a purpose; anything else is withheld (DEC-79).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DisclosureRule {
    /// The purpose.
    pub purpose: PurposeId,
    /// The recipient.
    pub recipient: ActorId,
    /// The categories it may get.
    pub categories: Vec<CategoryId>,
    /// What it may do with them.
    pub permitted_use: Vec<Key>,
}

impl Check for RestrictiveEvent {
    fn check(&self) -> Result<(), Fault> {
        self.change_kind.check().map_err(|fault| fault.within("change_kind"))?;
        self.source.check().map_err(|fault| fault.within("source"))?;
        self.entity_ref.check().map_err(|fault| fault.within("entity_ref"))?;
        self.issuer.check().map_err(|fault| fault.within("issuer"))?;
        self.action.check().map_err(|fault| fault.within("action"))?;
        self.reason.check().map_err(|fault| fault.within("reason"))
    }
}

impl Check for DisclosureRule {
    fn check(&self) -> Result<(), Fault> {
        self.purpose.check().map_err(|fault| fault.within("purpose"))?;
        self.recipient.check().map_err(|fault| fault.within("recipient"))?;
        self.categories.check().map_err(|fault| fault.within("categories"))?;
        self.permitted_use.check().map_err(|fault| fault.within("permitted_use"))
    }
}

/// Limits in force; each has a documented default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The longest time to a trigger gap's review, in milliseconds (DEC-98). Default 30 days.
    pub review_interval_ms_max: u64,
    /// How many classification works one (event, candidate) pair may use (DEC-22). Default 1.
    pub classification_max: u32,
    /// How many episodes run at once (§8.4). Default 64.
    pub fan_out_max: u32,
    /// How long an undispatched reservation or permit lives, in milliseconds (§8.3). Default 30 s.
    pub permit_ms: u64,
    /// How many fresh fingerprints without progress before a capability gap (DEC-89). Default 8.
    pub fingerprints_max: u32,
    /// How long an episode may take, in milliseconds. Default 10 minutes.
    pub episode_ms_max: u64,
    /// How long an ownership lease lasts, in milliseconds. Default 5 minutes.
    pub lease_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            review_interval_ms_max: 30 * 24 * 3_600_000,
            classification_max: 1,
            fan_out_max: 64,
            permit_ms: 30_000,
            fingerprints_max: 8,
            episode_ms_max: 600_000,
            lease_ms: 300_000,
        }
    }
}

/// How signing keys are governed. A deployment that signs states all three (§6.1, DEC-13).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SigningPolicy {
    /// How keys are rotated.
    pub rotation: Option<Text>,
    /// How keys are revoked, and what follows when one is compromised.
    pub revocation: Option<Text>,
    /// How it is decided what each key may sign.
    pub scope: Option<Text>,
}

impl SigningPolicy {
    /// Whether all three are stated.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.rotation.is_some() && self.revocation.is_some() && self.scope.is_some()
    }
}

impl Check for SigningPolicy {
    fn check(&self) -> Result<(), Fault> {
        self.rotation.check().map_err(|fault| fault.within("rotation"))?;
        self.revocation.check().map_err(|fault| fault.within("revocation"))?;
        self.scope.check().map_err(|fault| fault.within("scope"))
    }
}

/// A versioned deployment profile. Spec: Appendix A.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its id, stable across versions.
    pub profile_id: ProfileId,
    /// Its version, rising by one.
    pub version: u32,
    /// The user whose authority governs (SR1).
    pub user: ActorId,
    /// The space's outermost scope.
    pub scope: Scope,
    /// The answers to the ten questions, keyed `q1` to `q10`.
    pub answers: BTreeMap<Key, Text>,
    /// The authentication mechanisms in use (§6.1).
    pub mechanisms: Vec<Mechanism>,
    /// How signing keys are governed; complete where signatures are used (§6.1).
    #[serde(default)]
    pub signing_policy: SigningPolicy,
    /// The changes that restrict at once.
    #[serde(default)]
    pub restrictive_events: Vec<RestrictiveEvent>,
    /// What may be released to whom.
    #[serde(default)]
    pub disclosure_rules: Vec<DisclosureRule>,
    /// The independent authority for restrictions that an issuer may not make (DEC-75).
    pub restrictive_authority: ActorId,
    /// The policy for packets whose deadline passes.
    pub deadline_policy: PolicyId,
    /// The budget of the whole deployment.
    #[serde(default)]
    pub budget: Amounts,
    /// The budget of each obligation.
    #[serde(default)]
    pub obligation_budget: Amounts,
    /// The lane that only urgent work, readback and reconciliation may draw on (DEC-106).
    #[serde(default)]
    pub reserved_budget: Amounts,
    /// Limits.
    #[serde(default)]
    pub limits: Limits,
    /// Who decides besides the one user.
    #[serde(default, skip_serializing_if = "People::is_empty")]
    pub people: People,
    /// Whether it is in force.
    #[serde(default = "current")]
    pub standing: Standing,
}

const fn current() -> Standing {
    Standing::Current
}

impl Profile {
    /// The numbers of the questions that have no answer; consequential work needs none to be missing.
    #[must_use]
    pub fn unanswered(&self) -> Vec<u8> {
        (1..=QUESTIONS)
            .filter(|number| !self.answers.contains_key(&Key::from(format!("q{number}"))))
            .chain(self.signs_without_policy().then_some(1))
            .collect()
    }

    fn signs_without_policy(&self) -> bool {
        crate::branch!(
            "profile.signs_without_policy",
            self.mechanisms.contains(&Mechanism::Ed25519) && !self.signing_policy.is_complete()
        )
    }

    /// Whether all ten questions are answered, signing policy included.
    ///
    /// # Errors
    /// `profile_incomplete`, naming the questions left open.
    pub fn check_complete(&self) -> Result<(), Fault> {
        let open = self.unanswered();
        match open.is_empty() {
            true => Ok(()),
            false => Err(Fault::new(RefusalCode::ProfileIncomplete, format!("the profile leaves open: {open:?}"))
                .within("answers")),
        }
    }
}

impl Check for Profile {
    fn check(&self) -> Result<(), Fault> {
        self.profile_id.check().map_err(|fault| fault.within("profile_id"))?;
        self.user.check().map_err(|fault| fault.within("user"))?;
        self.scope.check().map_err(|fault| fault.within("scope"))?;
        self.answers.check().map_err(|fault| fault.within("answers"))?;
        let known = |key: &Key| (1..=QUESTIONS).any(|number| key.as_str() == format!("q{number}"));
        if let Some(key) = self.answers.keys().find(|key| !known(key)) {
            return Err(Fault::schema("the answers are keyed `q1` to `q10`").within(key).within("answers"));
        }
        self.signing_policy.check().map_err(|fault| fault.within("signing_policy"))?;
        self.restrictive_events.check().map_err(|fault| fault.within("restrictive_events"))?;
        self.disclosure_rules.check().map_err(|fault| fault.within("disclosure_rules"))?;
        self.restrictive_authority.check().map_err(|fault| fault.within("restrictive_authority"))?;
        self.deadline_policy.check().map_err(|fault| fault.within("deadline_policy"))?;
        self.budget.check().map_err(|fault| fault.within("budget"))?;
        self.obligation_budget.check().map_err(|fault| fault.within("obligation_budget"))?;
        self.reserved_budget.check().map_err(|fault| fault.within("reserved_budget"))?;
        self.people.check().map_err(|fault| fault.within("people"))
    }
}
