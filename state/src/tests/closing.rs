use super::fixtures::*;
use crate::{Commit, Denied, State, propose};
use closer_contracts::delta::Change;
use closer_contracts::id::ObligationId;
use closer_contracts::item::ItemKind;
use closer_contracts::obligation::{AssessmentStatus, Obligation, ObligationStatus};
use closer_contracts::{RefusalCode, shows};

/// The obligation `o`, open, its condition met.
fn met() -> State {
    let state = after(&founded(), vec![admit(obligation("o"))]);
    after(&state, vec![assessed("o", AssessmentStatus::Met)])
}

fn close(state: &State, changes: Vec<Change>) -> Result<(Commit, State), Vec<Denied>> {
    propose(state, delta(state, "closing", changes), &verified(&["o"]))
}

fn supersede(successor: Option<&str>) -> Change {
    Change::SetStatus {
        obligation_id: "o".into(),
        status: ObligationStatus::Superseded,
        successor: successor.map(ObligationId::from),
        reason: "another covers it".into(),
    }
}

#[test]
fn only_its_closure_authority_closes_an_obligation() {
    shows!("CP-5-10", "CP-2-19", "CP-C3-03"; by "state.closing_authorized");
    let state = met();
    for status in [ObligationStatus::Resolved, ObligationStatus::Superseded, ObligationStatus::Withdrawn] {
        let change = Change::SetStatus {
            obligation_id: "o".into(),
            status,
            successor: None,
            reason: "the timer says so".into(),
        };
        assert_eq!(codes(&state, vec![change]), [RefusalCode::NotClosable]);
    }
    let (_, closed) = close(&state, vec![set_status("o", ObligationStatus::Resolved)]).unwrap();
    assert_eq!(closed.obligation(&"o".into()).unwrap().status, ObligationStatus::Resolved);
    assert_eq!(closed.open_obligations().count(), 0);
}

#[test]
fn an_obligation_is_resolved_when_its_conditions_are_met() {
    shows!("CP-2-19"; by "state.conditions_met");
    for status in [AssessmentStatus::Unassessed, AssessmentStatus::NotMet, AssessmentStatus::Insufficient] {
        let state = after(&met(), vec![assessed("o", status)]);
        let refused = close(&state, vec![set_status("o", ObligationStatus::Resolved)]);
        assert_eq!(codes_of(refused), [RefusalCode::NotClosable]);
        assert!(close(&state, vec![set_status("o", ObligationStatus::Withdrawn)]).is_ok());
    }
    assert!(close(&met(), vec![set_status("o", ObligationStatus::Resolved)]).is_ok());
}

#[test]
fn a_successor_covers_every_unresolved_condition() {
    shows!("CP-2-19", "CP-5-10"; by "state.successor_covers");
    let state = after(&met(), vec![assessed("o", AssessmentStatus::NotMet)]);
    let covering = Obligation { resolution_conditions: vec![condition("condition-of-o")], ..obligation("p") };
    let state = after(&state, vec![admit(covering), admit(obligation("q"))]);
    for successor in [None, Some("nowhere"), Some("o"), Some("q")] {
        assert_eq!(codes_of(close(&state, vec![supersede(successor)])), [RefusalCode::NotClosable]);
    }
    assert!(close(&state, vec![supersede(Some("p"))]).is_ok());
}

#[test]
fn closing_disarms_the_triggers() {
    let (_, closed) = close(&met(), vec![set_status("o", ObligationStatus::Resolved)]).unwrap();
    assert_eq!(closed.items(ItemKind::Reentry).count(), 0);
    assert!(closed.obligation(&"o".into()).unwrap().reentry_refs.is_empty());
}

#[test]
fn a_settled_obligation_changes_only_by_being_reopened() {
    shows!("CP-10.2-10"; by "state.open_or_reopened");
    let (_, closed) = close(&met(), vec![set_status("o", ObligationStatus::Resolved)]).unwrap();
    let owner = Change::SetOwner { obligation_id: "o".into(), responsible_owner: "user".into() };
    for change in [owner, assessed("o", AssessmentStatus::NotMet), set_triggers("o", Vec::new(), None)] {
        assert_eq!(codes(&closed, vec![change]), [RefusalCode::NotClosable]);
    }
    let trigger = reentry("r-2", "o", time("2026-02-01T00:00:00Z"));
    let reopening = vec![set_status("o", ObligationStatus::Active), set_triggers("o", vec![trigger], None)];
    let reopened = after(&closed, reopening);
    assert!(reopened.open_obligations().any(|open| open.obligation_id == "o".into()));
}

#[test]
fn reopening_leads_to_active_and_installs_a_trigger() {
    shows!("CP-10.2-10"; by "state.reopens_active");
    let (_, closed) = close(&met(), vec![set_status("o", ObligationStatus::Resolved)]).unwrap();
    assert_eq!(codes(&closed, vec![set_status("o", ObligationStatus::Active)]), [RefusalCode::NoTrigger]);
    let trigger = || reentry("r-2", "o", time("2026-02-01T00:00:00Z"));
    let to = |status| vec![set_status("o", status), set_triggers("o", vec![trigger()], None)];
    assert!(codes(&closed, to(ObligationStatus::AwaitingEvent)).contains(&RefusalCode::NotClosable));
    assert!(codes(&closed, to(ObligationStatus::Active)).is_empty());
    let moved = close(&closed, vec![set_status("o", ObligationStatus::Withdrawn)]);
    assert_eq!(codes_of(moved), [RefusalCode::NotClosable]);
}
