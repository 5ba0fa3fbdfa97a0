use super::fixtures::*;
use crate::{Derivation, propose};
use closer_contracts::item::{Claim, Item, ItemKind, Method, SigningKeyEntry};
use closer_contracts::work::{EvidenceRelation, ReferenceStatus, Relation, ScopeMatch};
use closer_contracts::{RefusalCode, shows};

#[test]
fn a_claim_needs_resolved_applicable_support_for_its_own_proposition() {
    shows!("CP-INV-01", "CP-3.2-03", "CP-C14-14"; by "state.claim_has_support");
    let state = founded();
    let own = || bare_claim("a").relations[0].clone();
    let insufficient = [
        vec![],
        vec![relation("another-proposition")],
        vec![EvidenceRelation { reference_status: ReferenceStatus::Unresolved, ..own() }],
        vec![EvidenceRelation { scope_match: ScopeMatch::Unknown, ..own() }],
        vec![EvidenceRelation { relation: Relation::Contradicts, ..own() }],
    ];
    for relations in insufficient {
        let item = Item::Claim(Claim { relations, ..bare_claim("a") });
        assert_eq!(codes(&state, vec![add(item)]), [RefusalCode::UnsupportedPromotion]);
    }
    assert!(codes(&state, vec![add(claim("a"))]).is_empty());
}

#[test]
fn a_claim_states_when_it_applies() {
    shows!("CP-INV-01"; by "state.claim_has_applicability");
    let item = Item::Claim(Claim { applicability: Vec::new(), ..bare_claim("a") });
    assert_eq!(codes(&founded(), vec![add(item)]), [RefusalCode::UnsupportedPromotion]);
    assert!(codes(&founded(), vec![add(claim("a"))]).is_empty());
}

#[test]
fn a_revised_claim_is_supported_too() {
    let state = after(&founded(), vec![add(claim("a"))]);
    let unsupported = Item::Claim(Claim { relations: Vec::new(), ..bare_claim("a") });
    assert_eq!(codes(&state, vec![revise(&state, unsupported)]), [RefusalCode::UnsupportedPromotion]);
}

#[test]
fn a_claim_cites_a_rule_at_its_accepted_version() {
    let mut item = bare_claim("a");
    item.sufficiency_rule_ref.version = 2;
    assert_eq!(codes(&founded(), vec![add(Item::Claim(item))]), [RefusalCode::UnresolvedRef]);
}

#[test]
fn a_method_is_accepted_whole_or_not_at_all() {
    shows!("CP-5-08");
    let state = after(&founded(), vec![add(claim("a"))]);
    let whole = bare_method("m", &["a"]);
    let parts = [
        Method { preconditions: Vec::new(), ..whole.clone() },
        Method { success_criteria: Vec::new(), ..whole.clone() },
        Method { failure_criteria: Vec::new(), ..whole.clone() },
    ];
    for part in parts {
        assert_eq!(codes(&state, vec![add(Item::Method(part))]), [RefusalCode::SchemaInvalid]);
    }
    let next = after(&state, vec![add(Item::Method(whole.clone()))]);
    assert_eq!(next.method(&"m".into()), Some(&whole));
}

#[test]
fn a_premise_must_be_there_and_hold() {
    let state = after(&founded(), vec![add(claim("a")), add(claim("b"))]);
    assert_eq!(codes(&state, vec![add(method("m", &["nowhere"]))]), [RefusalCode::UnresolvedRef]);
    assert_eq!(codes(&state, vec![depends("d", "nowhere", "b")]), [RefusalCode::UnresolvedRef]);
    assert_eq!(codes(&state, vec![depends("d", "a", "nowhere")]), [RefusalCode::UnresolvedRef]);
    assert_eq!(codes(&state, vec![depends("d", "a", "a")]), [RefusalCode::SchemaInvalid]);
    let state = after(&state, vec![retract(ItemKind::Claim, "a")]);
    assert_eq!(codes(&state, vec![depends("d", "a", "b")]), [RefusalCode::StaleVersion]);
}

#[test]
fn what_is_not_committed_is_not_accepted() {
    shows!("CP-2-05", "CP-5-03"; by "state.any_change_denied");
    let state = founded();
    let proposed = delta(&state, "delta-1", vec![add(claim("a")), retract(ItemKind::Claim, "nowhere")]);
    assert!(propose(&state, proposed, &Derivation::at(now())).is_err());
    assert_eq!(state.claims_on(&"proposition-of-a".into()).count(), 0);
    let next = after(&state, vec![add(claim("a"))]);
    assert_eq!(next.claims_on(&"proposition-of-a".into()).count(), 1);
}

/// DEC-13: a revoked key is not registered again, by its holder or by anybody else, as current or as less than compromised.
#[test]
fn a_key_that_was_revoked_is_revoked_for_good() {
    let with_key = |id: &str, revoked: bool, compromised: bool| {
        let Item::Identity(mut holder) = identity(id) else { unreachable!("an identity") };
        let revoked_at = revoked.then(|| closer_contracts::Timestamp::from_unix_ms(0));
        holder.keys = vec![SigningKeyEntry {
            key_id: "sha256:21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9".into(),
            public_key: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a".into(),
            not_before: closer_contracts::Timestamp::from_unix_ms(0),
            not_after: closer_contracts::Timestamp::from_unix_ms(1),
            signing_scope: vec![closer_contracts::auth::SigningScope::Event],
            revoked_at,
            compromised,
        }];
        Item::Identity(holder)
    };
    let state = after(&founded(), vec![revise(&founded(), with_key("owner", true, true))]);
    for revived in [with_key("owner", false, false), with_key("owner", true, false), with_key("issuer", false, true)] {
        assert_eq!(codes(&state, vec![revise(&state, revived)]), [RefusalCode::KeyConflict]);
    }
    assert!(attempt(&state, vec![revise(&state, with_key("issuer", true, true))]).is_ok());
}
