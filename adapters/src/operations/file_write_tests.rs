//! The file write against other writers.

use super::*;
use crate::fixture::{clock, order, permitted, refusal, response, target};
use crate::operations::OperationContract;
use closer_contracts::shows;
use serde_json::Value;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Mutex;

struct Scene {
    outer: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("root/sub")).unwrap();
        Self { outer }
    }

    fn root(&self) -> PathBuf {
        self.outer.path().join("root")
    }

    fn contract(&self) -> Value {
        json!({ "kind": "file_write", "root": self.root(), "account": "host" })
    }

    fn write(&self, address: &str, content: &str, expected: &str) -> Performed {
        self.write_under(&self.contract(), address, content, expected)
    }

    fn write_under(&self, contract: &Value, address: &str, content: &str, expected: &str) -> Performed {
        let parameters = [("content", json!(content)), ("expected_previous", json!(expected))];
        let permitted = permitted(contract, target("host", address), &parameters);
        perform(&permitted, &parse(contract), &clock())
    }

    fn read(&self, address: &str) -> String {
        std::fs::read_to_string(self.root().join(address)).unwrap()
    }

    /// What lies beneath the root besides the targets.
    fn aside(&self) -> Vec<String> {
        let hidden = |folder: PathBuf| {
            let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            names
                .map(|name| name.into_string().unwrap())
                .filter(|name| name.starts_with(".closer-"))
                .collect::<Vec<_>>()
        };
        [hidden(self.root()), hidden(self.root().join("sub"))].concat()
    }
}

fn parse(contract: &Value) -> FileWrite {
    match OperationContract::read(contract).unwrap() {
        OperationContract::FileWrite(contract) => contract,
        other @ (OperationContract::Command(_) | OperationContract::Http(_) | OperationContract::McpTool(_)) => {
            panic!("another kind: {other:?}")
        }
    }
}

fn digest(content: &str) -> String {
    Digest::of(content.as_bytes()).to_string()
}

#[test]
fn a_file_is_created_and_exchanged_and_the_old_one_is_kept() {
    let scene = Scene::new();
    let created = response(scene.write("sub/file", "one", ABSENT));
    assert_eq!((&created["outcome"], &created["written"]), (&json!("created"), &json!(digest("one"))));
    assert_eq!(std::fs::metadata(scene.root().join("sub/file")).unwrap().mode() & 0o777, 0o600);
    std::fs::set_permissions(scene.root().join("sub/file"), PermissionsExt::from_mode(0o640)).unwrap();

    let exchanged = response(scene.write("sub/file", "two", &digest("one")));
    assert_eq!(exchanged["outcome"], "exchanged");
    assert_eq!(exchanged["displaced"], json!(digest("one")));
    assert!(exchanged["residual_interval_us"].is_u64());
    assert_eq!(scene.read("sub/file"), "two");
    assert_eq!(std::fs::metadata(scene.root().join("sub/file")).unwrap().mode() & 0o777, 0o640);
    let kept = exchanged["displaced_kept_as"].as_str().unwrap();
    assert_eq!(scene.aside(), [kept]);
    assert_eq!(scene.read(&format!("sub/{kept}")), "one");
}

#[test]
fn an_old_file_is_removed_where_the_contract_says_so_and_the_mode_is_the_contracts() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("file"), "one").unwrap();
    let mut contract = scene.contract();
    contract["keep_displaced"] = json!(false);
    contract["mode"] = json!("0644");
    let exchanged = response(scene.write_under(&contract, "file", "two", &digest("one")));
    assert_eq!(exchanged["displaced_kept_as"], Value::Null);
    assert_eq!(scene.aside(), [""; 0]);
    assert_eq!(std::fs::metadata(scene.root().join("file")).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn a_target_that_is_not_as_expected_is_left_alone() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("file"), "foreign").unwrap();
    assert!(refusal(scene.write("file", "two", &digest("one"))).contains("not what the action expected"));
    assert!(refusal(scene.write("file", "two", ABSENT)).contains("not what the action expected"));
    assert!(refusal(scene.write("none", "two", &digest("one"))).contains("not there"));
    assert!(refusal(scene.write("file", "two", "sha256:00")).contains("expected_previous"));
    assert_eq!(scene.read("file"), "foreign");
    assert_eq!(scene.aside(), [""; 0]);
}

#[test]
fn traversal_links_and_foreign_accounts_are_refused() {
    let scene = Scene::new();
    std::fs::write(scene.outer.path().join("secret"), "one").unwrap();
    symlink("../secret", scene.root().join("link")).unwrap();
    symlink("..", scene.root().join("up")).unwrap();
    for address in ["../secret", "sub/../../secret", "/etc/hostname", "link", "up/secret", "sub"] {
        refusal(scene.write(address, "two", &digest("one")));
    }
    let parameters = [("content", json!("two")), ("expected_previous", json!(ABSENT))];
    let foreign = permitted(&scene.contract(), target("other", "file"), &parameters);
    assert!(refusal(perform(&foreign, &parse(&scene.contract()), &clock())).contains("account"));
    assert_eq!(std::fs::read_to_string(scene.outer.path().join("secret")).unwrap(), "one");
    assert_eq!(scene.aside(), [""; 0]);
}

/// Stops between making ready and the exchange, does what another writer would do, and goes on.
fn interleaved(scene: &Scene, between: impl FnOnce()) -> Value {
    let contract = parse(&scene.contract());
    let parameters = [("content", json!("ours")), ("expected_previous", json!(digest("one")))];
    let permitted = permitted(&scene.contract(), target("host", "file"), &parameters);
    let clock = clock();
    let (write, ours, expected) = prepare(&permitted, &contract, &clock).unwrap();
    let Expected::Content(expected) = expected else {
        panic!("content is expected");
    };
    between();
    response(write.exchange(ours, expected))
}

#[test]
fn a_write_that_came_in_between_is_given_back() {
    shows!("CP-8.1-13"; by "file_write.displaced_as_expected");
    let scene = Scene::new();
    std::fs::write(scene.root().join("file"), "one").unwrap();
    let given_back = interleaved(&scene, || {
        std::fs::write(scene.root().join("new"), "foreign").unwrap();
        std::fs::rename(scene.root().join("new"), scene.root().join("file")).unwrap();
    });
    assert_eq!((&given_back["outcome"], &given_back["rounds"]), (&json!("given_back"), &json!(1)));
    assert_eq!(given_back["found"], json!(digest("foreign")));
    assert_eq!(scene.read("file"), "foreign");
}

#[test]
fn a_third_writer_between_the_two_exchanges_has_the_last_word() {
    let scene = Scene::new();
    let contract = parse(&scene.contract());
    std::fs::write(scene.root().join("file"), "one").unwrap();
    let parameters = [("content", json!("ours")), ("expected_previous", json!(digest("one")))];
    let permitted = permitted(&scene.contract(), target("host", "file"), &parameters);
    let clock = clock();
    let (write, ours, _) = prepare(&permitted, &contract, &clock).unwrap();
    let foreign = |content: &str| {
        std::fs::write(scene.root().join("new"), content).unwrap();
        std::fs::rename(scene.root().join("new"), scene.root().join("file")).unwrap();
    };
    foreign("second");
    write.rename(RenameFlags::EXCHANGE).unwrap();
    let found = write.aside_identity().unwrap();
    assert_eq!(found.digest.to_string(), digest("second"));
    // Ours is at the target now; the third writer replaces it before it is exchanged back.
    foreign("third");
    let given_back = response(write.give_back(ours, found, 0, clock.now().0));
    assert_eq!(given_back["rounds"], 2);
    assert_eq!(scene.read("file"), "third");
}

#[test]
fn our_file_changed_in_place_by_another_writer_is_kept() {
    let scene = Scene::new();
    let contract = parse(&scene.contract());
    std::fs::write(scene.root().join("file"), "one").unwrap();
    let parameters = [("content", json!("ours")), ("expected_previous", json!(digest("one")))];
    let permitted = permitted(&scene.contract(), target("host", "file"), &parameters);
    let clock = clock();
    let (write, ours, _) = prepare(&permitted, &contract, &clock).unwrap();
    std::fs::write(scene.root().join("new"), "second").unwrap();
    std::fs::rename(scene.root().join("new"), scene.root().join("file")).unwrap();
    write.rename(RenameFlags::EXCHANGE).unwrap();
    let found = write.aside_identity().unwrap();
    std::fs::write(scene.root().join("file"), "ours, continued by another").unwrap();
    response(write.give_back(ours, found, 0, clock.now().0));
    assert_eq!(scene.read("file"), "ours, continued by another");
}

#[test]
fn what_another_writer_goes_on_writing_into_the_old_file_is_kept_aside() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("file"), "one").unwrap();
    let mut held = std::fs::OpenOptions::new().append(true).open(scene.root().join("file")).unwrap();
    let exchanged = response(scene.write("file", "two", &digest("one")));
    held.write_all(b", and more").unwrap();
    let kept = exchanged["displaced_kept_as"].as_str().unwrap();
    assert_eq!(scene.read(kept), "one, and more");
    assert_eq!(scene.read("file"), "two");
}

#[test]
fn without_the_exchange_it_is_registered_as_not_repeat_safe_and_replaces() {
    let scene = Scene::new();
    std::fs::write(scene.root().join("file"), "one").unwrap();
    assert_eq!(repeat_safety(&scene.root()).unwrap(), RepeatSafety::Conditional);
    assert_eq!(scene.aside(), [""; 0]);
    let write = |expected: &str| {
        let parameters = [("content", json!("two")), ("expected_previous", json!(expected))];
        let mut order = order(&scene.contract(), target("host", "file"), &parameters);
        std::sync::Arc::get_mut(&mut order.entry).unwrap().repeat_safety = RepeatSafety::NotRepeatSafe;
        perform(&Permitted::for_test(order), &parse(&scene.contract()), &clock())
    };
    assert_eq!(response(write(&digest("one")))["outcome"], "replaced_without_exchange");
    assert_eq!(scene.read("file"), "two");
    refusal(write(&digest("one")));
    assert_eq!(scene.aside(), [""; 0]);
}

/// How many rounds the competition has: `CLOSER_ROUNDS`, or a number that takes about a second.
fn rounds() -> u32 {
    std::env::var("CLOSER_ROUNDS").map_or(200, |rounds| rounds.parse().unwrap())
}

/// In each round, two foreign writers replace the file, one strictly after the other, while ours runs. Whatever the
/// order, the last foreign write must stand at the end: ours never expected one, so it never comes after one.
#[test]
fn competing_writers_lose_nothing() {
    let scene = Scene::new();
    let file = scene.root().join("file");
    let mut contract = scene.contract();
    contract["keep_displaced"] = json!(false);
    std::fs::write(&file, "start").unwrap();
    let mut outcomes = std::collections::BTreeMap::<String, u32>::new();
    for round in 0..rounds() {
        let before = std::fs::read_to_string(&file).unwrap();
        // Held while a foreign writer replaces the file, so that the order of foreign writes is known.
        let last_foreign = Mutex::new(String::new());
        let barrier = std::sync::Barrier::new(3);
        let foreign = |who: u32| {
            let (content, new) = (format!("foreign {who} of {round}"), scene.root().join(format!("new-{who}")));
            std::fs::write(&new, &content).unwrap();
            barrier.wait();
            // Spread over the time that ours takes.
            std::thread::sleep(std::time::Duration::from_micros(u64::from((round * (7 + 4 * who)) % 400)));
            let mut last = last_foreign.lock().unwrap();
            std::fs::rename(&new, &file).unwrap();
            *last = content;
        };
        let performed = std::thread::scope(|scope| {
            let others = [1, 2].map(|who| scope.spawn(move || foreign(who)));
            barrier.wait();
            let performed = scene.write_under(&contract, "file", &format!("ours {round}"), &digest(&before));
            for other in others {
                other.join().unwrap();
            }
            performed
        });
        let outcome = match performed {
            Performed::Responded { response, .. } => response.0["outcome"].as_str().unwrap().to_owned(),
            Performed::NotSent { .. } => "not_sent".to_owned(),
            Performed::Unknown { reason, .. } => panic!("round {round}: {reason}"),
        };
        *outcomes.entry(outcome).or_default() += 1;
        // Each foreign write came before the exchange, and then ours was not wanted, or after it, and replaced ours.
        assert_eq!(scene.read("file"), *last_foreign.lock().unwrap(), "round {round}");
        assert_eq!(scene.aside(), [""; 0], "round {round}");
    }
    assert!(outcomes.values().sum::<u32>() == rounds() && outcomes.len() > 1, "{outcomes:?}");
    eprintln!("{outcomes:?}");
}
