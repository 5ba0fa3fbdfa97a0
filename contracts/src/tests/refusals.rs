//! Refusal codes: stable numbers, one precedence, one page each. Spec: DEC-01.

use super::support::{committed, names_in};
use crate::example::{Example, Extent};
use crate::fault::Fault;
use crate::refusal::{CheckKind, Denial, PRECEDENCE, Refusal, RefusalCode, first};
use std::collections::BTreeSet;

#[test]
fn numbers_and_slugs_are_unique_and_stay() {
    let numbers: BTreeSet<u16> = RefusalCode::ALL.iter().map(|code| code.number()).collect();
    let slugs: BTreeSet<&str> = RefusalCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!((numbers.len(), slugs.len()), (RefusalCode::ALL.len(), RefusalCode::ALL.len()));
    assert!(RefusalCode::ALL.is_sorted_by_key(|code| code.number()));
    for code in RefusalCode::ALL {
        assert_eq!(RefusalCode::from_slug(code.as_str()), Some(*code));
        assert_eq!(serde_json::to_value(code).expect("a word"), code.as_str());
        assert!(!code.meaning().is_empty() && !code.spec_ref().is_empty());
    }
    assert_eq!(RefusalCode::from_slug("none_of_these"), None);
    let rows: Vec<serde_json::Value> = RefusalCode::ALL
        .iter()
        .map(|code| {
            serde_json::json!({
                "number": code.number(),
                "slug": code.as_str(),
                "precedence": code.precedence(),
                "retryable": code.is_retryable(),
                "spec": code.spec_ref(),
            })
        })
        .collect();
    let table =
        serde_json::json!({ "about": "Refusal codes: numbers never change and are never reused.", "codes": rows });
    committed("vectors/refusals.json", &super::vectors::text(&table));
}

#[test]
fn every_code_of_the_catalogue_is_here() {
    let catalogue = include_str!("../../../docs/requirements/closer.md");
    let start = catalogue.find("### Refusal codes").expect("the list of codes");
    let end = start + catalogue[start..].find("\n---").expect("its end");
    let asked: BTreeSet<&str> = catalogue[start..end]
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('`'))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect();
    assert_eq!(asked.len(), 56);
    let runtime = ["busy", "clock_unreliable", "no_answer", "storage_full"];
    let ours: BTreeSet<&str> = RefusalCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(ours, asked.into_iter().chain(runtime).collect());
}

#[test]
fn precedence_holds_every_code_once() {
    let ordered: BTreeSet<RefusalCode> = PRECEDENCE.iter().copied().collect();
    assert_eq!(PRECEDENCE.len(), RefusalCode::ALL.len());
    assert_eq!(ordered, RefusalCode::ALL.iter().copied().collect());
    let refusal = |code: RefusalCode| Refusal { code, ..Refusal::example(Extent::Minimal) };
    let all: Vec<Refusal> = RefusalCode::ALL.iter().rev().copied().map(refusal).collect();
    assert_eq!(first(&all).map(|refusal| refusal.code), PRECEDENCE.first().copied());
    let two = [refusal(RefusalCode::Busy), refusal(RefusalCode::GrantRevoked)];
    assert_eq!(first(&two).map(|refusal| refusal.code), Some(RefusalCode::GrantRevoked));
    assert_eq!(first(&[]), None);
}

#[test]
fn a_defect_is_reported_under_the_check_that_found_it() {
    for (code, check) in [
        (RefusalCode::Unauthenticated, CheckKind::Authentication),
        (RefusalCode::SchemaInvalid, CheckKind::Schema),
        (RefusalCode::DigestMismatch, CheckKind::Schema),
        (RefusalCode::UnresolvedRef, CheckKind::Resolution),
        (RefusalCode::MissingAuthority, CheckKind::Authority),
    ] {
        let denial = Denial::from(Fault::new(code, "a reason").within("field"));
        assert_eq!((denial.code, denial.check, denial.offending.as_deref()), (code, check, Some("field")));
    }
}

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let pages: BTreeSet<String> = names_in("../docs/refusals").into_iter().collect();
    let wanted: BTreeSet<String> = RefusalCode::ALL.iter().map(|code| format!("{code}.md")).collect();
    assert_eq!(pages, wanted);
    for code in RefusalCode::ALL {
        let page = super::support::text_of(&format!("../docs/refusals/{code}.md"));
        let title = format!("# {code} ({})\n", code.number());
        assert!(page.starts_with(&title), "docs/refusals/{code}.md begins with `{title}`");
        let retry = if code.is_retryable() { "Retryable: yes" } else { "Retryable: no" };
        assert!(page.contains(retry), "docs/refusals/{code}.md says `{retry}`");
        assert!(page.contains(code.spec_ref()), "docs/refusals/{code}.md cites {}", code.spec_ref());
        for part in ["\n## Cause\n", "\n## What to do\n"] {
            assert!(page.contains(part), "docs/refusals/{code}.md has {part}");
        }
    }
}
