//! What may come back, and what may not, without anybody who answers.

use super::*;
use crate::suite::example_item;
use crate::world::{OneWorld, commit};
use closer_contracts::shows;
use serde_json::json;

fn packet() -> Work {
    let item = example_item();
    let committed = commit(&item, &item.claim).unwrap();
    OneWorld::begin(&item, &committed, None).unwrap().work().clone()
}

fn answered(work: &Work) -> Value {
    let synthetic = Participant::Synthetic(Synthetic { follows: 100, guesses: 0 });
    serde_json::to_value(answer(&synthetic, work, 1).unwrap()).unwrap()
}

fn code(value: &Value, work: &Work) -> Option<RefusalCode> {
    read(value.to_string().as_bytes(), work).err().map(|fault| fault.code)
}

#[test]
fn every_mutation_of_an_answer_is_caught() {
    shows!("CP-10.3-21");
    let work = packet();
    let good = answered(&work);
    assert_eq!(code(&good, &work), None);
    let members: Vec<String> = good["result"].as_object().unwrap().keys().cloned().collect();
    for member in members {
        let mut without = good.clone();
        without["result"].as_object_mut().unwrap().remove(&member);
        assert!(code(&without, &work).is_some(), "without {member}");
        let mut other = good.clone();
        other["result"][&member] = json!({ "a": 1 });
        assert!(code(&other, &work).is_some(), "{member} as an object");
    }
    for (place, value) in [
        ("/result/work_id", json!("another-work")),
        ("/result/action_proposals/0/operation", json!("no operation")),
        ("/result/action_proposals/0/parameters/plan", json!(0.5)),
        ("/result/action_proposals/0/expected_postcondition/expectations", json!([])),
        ("/usage/calls", json!(-1)),
        ("/packet", json!("sha256:00")),
    ] {
        let mut mutated = good.clone();
        *mutated.pointer_mut(place).unwrap() = value;
        assert!(code(&mutated, &work).is_some(), "{place}");
    }
    let mut more = good.clone();
    more["reasoning"] = json!("because");
    assert!(code(&more, &work).is_some());
}

#[test]
fn an_answer_to_a_packet_that_was_cut_short_is_found() {
    shows!("CP-10.4-02");
    let work = packet();
    let cut = Work { context_items: work.context_items[1..].to_vec(), ..work.clone() };
    assert_eq!(code(&answered(&cut), &work), Some(RefusalCode::DigestMismatch));
    assert_eq!(code(&answered(&work), &work), None);
}

#[test]
fn the_largest_shapes_that_are_allowed_pass_without_a_model() {
    shows!("CP-10.3-20");
    let mut item = example_item();
    item.question = "w".repeat(closer_contracts::id::TEXT_BYTES_MAX).into();
    item.claim.predicate = "p".repeat(closer_contracts::id::KEY_BYTES_MAX).into();
    item.claim.evidence =
        vec![[("f".repeat(256).into(), closer_contracts::refs::Plain(json!("v".repeat(4_096))))].into(); 8];
    let first = item.operations[0].clone();
    item.operations.extend(
        (0..12).map(|number| crate::item::Allowed { operation: format!("operation-{number}").into(), ..first.clone() }),
    );
    item.check().unwrap();
    let committed = commit(&item, &item.claim).unwrap();
    let world = OneWorld::begin(&item, &committed, None).unwrap();
    let work = world.work().clone();
    let answered = read(answered(&work).to_string().as_bytes(), &work).unwrap();
    let step = crate::step::Step::of(&answered.result).unwrap();
    let outcome = world.answer(answered.result, &step).unwrap().unwrap();
    assert!(outcome.admitted, "{outcome:?}");
}
