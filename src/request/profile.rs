//! The deployment profile in force: its ten answers, and what an open question keeps from being done. Spec: Appendix A.

use super::{Answer, Outcome};
use closer_contracts::id::Key;
use closer_contracts::profile::QUESTIONS;
use closer_contracts::refusal::RefusalCode;
use closer_protocol::View;
use serde_json::{Value, json};

/// What each question is about, in order.
const ABOUT: [&str; QUESTIONS as usize] = [
    "how each kind of identity is authenticated and revoked, and which unsigned channels are enough",
    "who may change goals, policy, grants and restrictions, and how independent owners are appointed",
    "which events and evidence can activate work, and how an ambiguous match is kept",
    "which observation is authoritative for each postcondition, also after an unknown effect",
    "how commits, ownership fences, operation keys and reassignment are kept in step",
    "what each recipient may get, and how a wrong release is reconciled",
    "what happens at each deadline: lease, Bench, trigger, budget, urgent review",
    "which work stays permitted while a judgment waits, and what makes work dormant",
    "the bounds on reservations, cancellation and overbooking",
    "what would have to be observed to falsify the claimed benefit",
];

/// Says of every question whether it is answered, and what follows where one is not.
pub(super) fn check(view: &View) -> Answer {
    let Some(profile) = view.state.profile() else {
        return Answer::absent("no profile is in force".to_owned());
    };
    let open = profile.unanswered();
    let mut text = vec![format!("{} version {}", profile.profile_id, profile.version)];
    let mut questions: Vec<Value> = Vec::new();
    for (number, about) in (1..=QUESTIONS).zip(ABOUT) {
        let answer = profile.answers.get(&Key::from(format!("q{number}")));
        let is_open = open.contains(&number);
        let told = match (answer, is_open) {
            (None, _) => "OPEN".to_owned(),
            (Some(answer), true) => {
                format!("OPEN - signatures are in use and not every part of their policy is stated; {answer}")
            }
            (Some(answer), false) => answer.to_string(),
        };
        text.push(format!("  q{number:<3} {about}"));
        text.push(format!("       {told}"));
        questions.push(json!({ "question": number, "about": about, "answer": answer, "open": is_open }));
    }
    let data = json!({ "profile_id": profile.profile_id, "version": profile.version, "questions": questions });
    if open.is_empty() {
        text.push("every question is answered".to_owned());
        return Answer::done(data, text);
    }
    let numbers: Vec<String> = open.iter().map(|number| format!("q{number}")).collect();
    text.push(format!(
        "{} open: until then only what reads is admitted, and nothing that changes anything",
        numbers.join(", ")
    ));
    text.push("see docs/refusals/profile_incomplete.md".to_owned());
    Answer { code: Some(RefusalCode::ProfileIncomplete), ..Answer::new(Outcome::Refused, data, text) }
}
