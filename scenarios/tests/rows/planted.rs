//! Thirty conferences about something that is not so and thirty about something that is, whoever of them says it: only what
//! the observation shows is accepted, and it is the sufficiency rule that makes the difference.

use crate::conferring::{Inquiry, by_role};
use crate::support::claimed;
use closer_contracts::shows;
use closer_contracts::work::Relation;
use closer_scenarios::founding::INQUIRY;
use closer_scenarios::space::Answer;
use closer_scenarios::{Deployment, worker};

/// How many conferences of each sort.
const CONFERENCES: usize = 30;

/// In the `number`th conference these claim that the plan is basic, on real evidence; the others say that it tells nothing.
fn claiming(number: usize) -> Answer {
    let members = 1 + number % 7;
    by_role(move |role, work, view| {
        let place = INQUIRY.iter().position(|known| *known == role).unwrap_or(0);
        match members & (1 << place) != 0 {
            true => worker::claims(work, view, "basic", Relation::Supports),
            false => worker::reads(work, view, Relation::Irrelevant),
        }
    })
}

/// How many of the conferences end with the claim accepted.
fn promoted(deployment: impl Fn() -> Deployment, observed: impl Fn(usize) -> String) -> usize {
    let ends_accepted = |number: &usize| {
        let mut inquiry = Inquiry::of(deployment(), &observed(*number), claiming(*number));
        inquiry.released();
        inquiry.concluded();
        let episode_id = inquiry.episode_id.clone();
        inquiry.space.finish(&episode_id).unwrap();
        claimed(&inquiry.space)
    };
    (0..CONFERENCES).filter(ends_accepted).count()
}

#[test]
fn planted_claims_are_refused_supported_ones_pass_and_without_the_rule_both_would() {
    shows!("CP-3.5-06", "CP-4.1-32"; by "sufficiency.observation_decides");
    let ruled = || Deployment::default().shown("basic");
    let planted = |number: usize| format!("plan-{number}");
    assert_eq!(promoted(ruled, planted), 0, "nothing is accepted that the observation does not show");
    assert_eq!(promoted(ruled, |_| "basic".to_owned()), CONFERENCES, "and everything that it does show");
    assert_eq!(
        promoted(Deployment::default, planted),
        CONFERENCES,
        "without the rule their readings would have passed"
    );
}
