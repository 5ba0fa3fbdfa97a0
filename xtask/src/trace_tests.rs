use super::evidence::Runner;
use super::*;

const ROWS: &str = "# S\n| CP-1-01 | a | b |\n| CP-1-02 | a | b |\n| CP-1-03 | Withdrawn. | b |\n";

fn trace(evidence: Vec<Evidence>) -> Trace {
    let catalogues = vec![Catalogue { file: "closer.md", is_built_now: true, rows: catalogue::parse(ROWS, "CP") }];
    Trace { catalogues, evidence, marks: ["m.a".to_owned()].into() }
}

fn claim(rows: &[&str], marks: &[&str]) -> Evidence {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let runner = Runner::Test { package: "closer-state".into(), target: "lib.rs".into(), path: "t".into() };
    Evidence { rows: owned(rows), marks: owned(marks), place: "f.rs:1".into(), runner: Some(runner) }
}

fn errors(evidence: Vec<Evidence>, before: &[&str]) -> Vec<String> {
    trace(evidence).findings(&before.iter().map(|id| (*id).to_owned()).collect()).errors
}

#[test]
fn claims_that_hold_together_pass() {
    assert_eq!(errors(vec![claim(&["CP-1-01", "CP-1-02"], &["m.a"])], &["CP-1-01"]), Vec::<String>::new());
}

#[test]
fn unknown_rows_unknown_marks_and_withdrawn_rows_are_named() {
    let found = errors(vec![claim(&["CP-9-09", "CP-1-03"], &["m.b"])], &[]);
    assert_eq!(
        found,
        [
            "f.rs:1: no catalogue has a row `CP-9-09`",
            "f.rs:1: row `CP-1-03` is withdrawn",
            "f.rs:1: no branch carries the mark `m.b`",
        ]
    );
}

#[test]
fn a_test_of_four_rows_and_a_claim_outside_a_test_are_refused() {
    let four = claim(&["CP-1-01", "CP-1-02", "CP-1-01", "CP-1-02"], &[]);
    let outside = Evidence { runner: None, ..claim(&["CP-1-01"], &[]) };
    let found = errors(vec![four, outside], &[]);
    assert_eq!(
        found,
        ["f.rs:1: shows 4 rows; one to 3 are allowed", "f.rs:1: `shows!` must be the first statement of a test"]
    );
}

#[test]
fn a_lost_row_is_an_error_and_a_withdrawn_one_is_not() {
    assert_eq!(errors(vec![], &["CP-1-02", "CP-1-03"]), ["CP-1-02 was shown before and is lost"]);
}

#[test]
fn the_page_shows_what_it_is_later_held_to() {
    let trace = trace(vec![claim(&["CP-1-01"], &["m.a"])]);
    let proved = [prove::pair("CP-1-01", "m.a")].into();
    let page = page::render(&trace, &proved);
    assert!(page.contains("| CP-1-01 | `m.a` |  | state t | yes |\n"), "{page}");
    assert!(page.contains("Later: CP-1-02 to CP-1-03\n"), "{page}");
    assert_eq!(page::shown(&page).into_iter().collect::<Vec<_>>(), ["CP-1-01"]);
}

#[test]
fn a_mark_that_no_test_cites_is_noticed() {
    let notices = trace(vec![claim(&["CP-1-01"], &[])]).findings(&BTreeSet::new()).notices;
    assert_eq!(notices, ["no test cites the mark `m.a`"]);
}
