use super::*;

fn scanned(text: &str) -> Scan {
    scan(text, &["stage".to_owned()], false).expect("lexes")
}

fn words(words: &[Word]) -> Vec<&str> {
    words.iter().map(|word| word.text.as_str()).collect()
}

#[test]
fn a_first_statement_ties_rows_and_marks_to_the_test_path() {
    let scan =
        scanned(r#"mod tests { #[test] fn refused() { shows!("CP-1-01", "CP-1-02"; by "a.b"); assert!(true); } }"#);
    let shows = scan.shows.first().expect("one call");
    assert_eq!(shows.test.as_deref(), Some("stage::tests::refused"));
    assert_eq!(shows.rows, ["CP-1-01", "CP-1-02"]);
    assert_eq!(shows.marks, ["a.b"]);
}

#[test]
fn rows_elsewhere_than_in_the_first_statement_of_a_test_have_no_test() {
    let scan = scanned(
        r#"#[test] fn late() { let x = 1; shows!("CP-1-01"); }
           fn helper() { shows!("CP-1-02"); }
           #[test] fn nested() { if true { shows!("CP-1-03"); } }"#,
    );
    assert_eq!(scan.shows.len(), 3);
    assert!(scan.shows.iter().all(|shows| shows.test.is_none()));
}

#[test]
fn a_path_prefix_and_macro_generated_tests_are_understood() {
    let scan = scanned(
        r#"proptest! { #[test] fn any(x in 0..9u8) { closer_contracts::shows!("CP-1-01"; by "m.a", "m.b"); } }"#,
    );
    let shows = scan.shows.first().expect("one call");
    assert_eq!(shows.test.as_deref(), Some("stage::any"));
    assert_eq!(shows.marks, ["m.a", "m.b"]);
}

#[test]
fn marks_are_found_inside_arguments_but_not_in_comments_or_strings() {
    let scan = scanned(
        r#"fn judge() { refuse_if(branch!("monitor.late", a > b)); /* branch!("no.no", x) */ let s = "branch!(\"no\", x)"; }
           /// branch!("doc.no", x)
           fn documented() {}"#,
    );
    let names: Vec<&str> = scan.marks.iter().map(|mark| mark.name.as_str()).collect();
    assert_eq!(names, ["monitor.late"]);
}

#[test]
fn function_length_runs_from_signature_to_closing_brace() {
    let scan = scanned("/// Docs.\nfn long(\n  a: u8,\n) {\n  a;\n}\n");
    let function = scan.functions.first().expect("one function");
    assert_eq!(function.line_count, 5);
}

#[test]
fn use_groups_are_spelled_out_and_test_code_is_told_apart() {
    let scan = scanned("use std::{fs, io::{self, Read}}; #[cfg(test)] mod tests { use std::env; }");
    assert_eq!(words(&scan.paths), ["std::fs", "std::io::self", "std::io::Read", "std::env"]);
    let in_tests: Vec<bool> = scan.paths.iter().map(|path| path.is_test).collect();
    assert_eq!(in_tests, [false, false, false, true]);
}

#[test]
fn module_declarations_carry_their_path_and_whether_they_are_tests() {
    let scan = scanned("mod a; #[cfg(test)] #[path = \"b_tests.rs\"] mod b; mod inline { mod c; }");
    let shown: Vec<_> = scan.modules.iter().map(|m| (m.name.as_str(), m.parents.join("::"), m.is_test)).collect();
    assert_eq!(
        shown,
        [("a", "stage".to_owned(), false), ("b", "stage".to_owned(), true), ("c", "stage::inline".to_owned(), false)]
    );
    assert_eq!(scan.modules.get(1).and_then(|m| m.path.clone()), Some(PathBuf::from("b_tests.rs")));
}

#[test]
fn text_that_is_not_rust_is_an_error() {
    assert!(scan("fn (", &[], false).is_err());
}

#[test]
fn an_attribute_covers_its_own_item_only() {
    let scan = scanned("#[cfg(test)] mod tests { fn a() {} } fn b() {} #[test] fn c() {} fn d() {}");
    let shown: Vec<_> = scan.functions.iter().map(|f| (f.path.as_str(), f.is_test)).collect();
    assert_eq!(shown, [("stage::tests::a", true), ("stage::b", false), ("stage::c", true), ("stage::d", false)]);
}

#[test]
fn a_table_of_field_rows_is_one_test_a_line() {
    let scan = scanned(
        r#"macro_rules! field_rows { ($($test:ident $row:literal),+) => { $(#[test] fn $test() { go($row) })+ } }
           field_rows! { c1_id "CP-C1-F02" Envelope "payload_id", c1_to "CP-C1-F03" Envelope "to" nullable, }
           fn other() { field_rows!(@takes nullable) }"#,
    );
    let shown: Vec<_> = scan.shows.iter().map(|s| (s.test.as_deref().expect("a test"), s.rows.concat())).collect();
    assert_eq!(shown, [("stage::c1_id", "CP-C1-F02".to_owned()), ("stage::c1_to", "CP-C1-F03".to_owned())]);
}
