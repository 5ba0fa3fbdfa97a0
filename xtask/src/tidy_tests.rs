use super::*;
use crate::cargo::Target;
use crate::source::scan;

fn file(path: &str, text: &str) -> SourceFile {
    SourceFile {
        path: path.to_owned(),
        package: "closer-monitor".to_owned(),
        target: Target { name: "closer_monitor".into(), kind: vec!["lib".into()], src_path: path.into() },
        is_test: false,
        line_count: text.lines().count(),
        scan: scan(text, &[], false).expect("lexes"),
    }
}

#[test]
fn leftovers_are_found_where_they_are_called() {
    let found = leftovers(&file(
        "a/src/lib.rs",
        "fn a() {\n  dbg!(1);\n  let todo = \"todo!()\";\n}\n#[ignore = \"slow\"]\nfn b() {}",
    ));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|error| error == "a/src/lib.rs:2: `dbg!` must not stay"));
    assert!(found.iter().any(|error| error.starts_with("a/src/lib.rs:5: `#[ignore")));
}

#[test]
fn the_core_must_not_name_the_world() {
    let text = "use std::{collections::BTreeMap, fs};\nfn now() -> u64 { SystemTime::now(); tokio::spawn(x) }\n\
        fn fine(env: Env, rand: Rand) { rand; env.fs(); }\n#[cfg(test)] mod tests { use std::env; }";
    let found = forbidden_in_core(&file("monitor/src/lib.rs", text));
    assert_eq!(
        found,
        [
            "monitor/src/lib.rs:1: the pure core must not name `std::fs`",
            "monitor/src/lib.rs:2: the pure core must not name `SystemTime::now`",
            "monitor/src/lib.rs:2: the pure core must not name `tokio::spawn`",
        ]
    );
    assert_eq!(forbidden_in_core(&file("store/src/lib.rs", text)), Vec::<String>::new());
}

#[test]
fn a_mark_repeats_within_a_file_only() {
    let twice = r#"fn a() { branch!("m.a", x) } fn b() { branch!("m.a", y); branch!("m.b", z) }"#;
    let sources = |files| Sources { files, dead: Vec::new() };
    assert_eq!(repeated_marks(&sources(vec![file("a.rs", twice)])), Vec::<String>::new());
    let found = repeated_marks(&sources(vec![file("a.rs", twice), file("b.rs", r#"fn c() { branch!("m.b", x) }"#)]));
    assert_eq!(found, ["mark `m.b` stands in several files: a.rs, b.rs"]);
}

#[test]
fn core_lint_files_repeat_the_root_and_agree() {
    let table = |text: &str| toml::from_str::<toml::Table>(text).expect("toml");
    let shared = table("allow-unwrap-in-tests = true\n");
    let files = [("contracts", table("allow-unwrap-in-tests = true\n")), ("state", table("x = 1\n"))].into();
    assert_eq!(
        disagreeing_lints(&shared, &files),
        [
            "state/clippy.toml does not repeat `allow-unwrap-in-tests` of the root file",
            "state/clippy.toml differs from that of the other core crates",
        ]
    );
}
