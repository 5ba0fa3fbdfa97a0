//! The pages of the refusal codes, for whoever is told a code and has no documentation at hand.

use closer_contracts::refusal::RefusalCode;

macro_rules! pages {
    ($($slug:literal),+ $(,)?) => {
        fn page(slug: &str) -> &'static str {
            match slug {
                $($slug => include_str!(concat!("../docs/refusals/", $slug, ".md")),)+
                _ => "",
            }
        }
    };
}

pages! {
    "unauthenticated",
    "duplicate",
    "key_conflict",
    "schema_invalid",
    "unknown_version",
    "unresolved_ref",
    "digest_mismatch",
    "cardinality",
    "oversize",
    "stale_parent",
    "stale_version",
    "missing_endorsement",
    "missing_authority",
    "not_closable",
    "no_trigger",
    "unsupported_promotion",
    "no_origin",
    "unregistered_operation",
    "capability_undeclared",
    "target_mismatch",
    "out_of_bounds",
    "grant_revoked",
    "grant_expired",
    "restricted",
    "subject_mismatch",
    "wrong_phase",
    "unassessed",
    "key_reuse_changed_content",
    "outcome_unknown",
    "not_repeat_safe",
    "stale_epoch",
    "lease_expired",
    "budget_exceeded",
    "uncapped_route",
    "not_restrictive",
    "missing_deadline",
    "scope_exceeded",
    "issuer_limit",
    "issuer_suspended",
    "self_privilege",
    "not_released",
    "move_not_allowed",
    "round_limit",
    "foreign_assent",
    "membership_stale",
    "disclosure_denied",
    "coverage_missing",
    "release_stopped",
    "redistribution_denied",
    "consent_missing",
    "contract_incompatible",
    "endpoint_mismatch",
    "registry_expired",
    "stale_packet",
    "not_a_grant",
    "profile_incomplete",
    "busy",
    "storage_full",
    "clock_unreliable",
    "no_answer",
}

/// What to do after a refusal: the points of its page's last section.
#[must_use]
pub fn what_to_do(code: RefusalCode) -> Vec<String> {
    let (_, section) = page(code.as_str()).split_once("## What to do\n").unwrap_or_default();
    let mut points: Vec<String> = Vec::new();
    for line in section.lines().take_while(|line| !line.starts_with('#')) {
        match (line.strip_prefix("- "), points.last_mut()) {
            (Some(point), _) => points.push(point.to_owned()),
            (None, Some(last)) if !line.trim().is_empty() => last.push_str(&format!(" {}", line.trim())),
            (None, _) => {}
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_what_to_do() {
        for code in RefusalCode::ALL {
            assert!(!what_to_do(*code).is_empty(), "{}", code.as_str());
        }
    }
}
