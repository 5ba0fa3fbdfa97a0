//! The races, and every order of their moves.

use crate::races;
use crate::races::{Begin, Move};
use stateright::{Checker, Model, Property};

/// Every interleaving of a race, with what must hold after each move, and what must be reached by some.
struct Race {
    /// What everything begins from.
    begin: races::Begin,
    /// What can happen, each once.
    moves: &'static [races::Move],
}

/// A path and what it came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reached {
    taken: Vec<usize>,
    came_to: races::CameTo,
}

impl Race {
    fn carry_out(&self, taken: Vec<usize>) -> Reached {
        let moves: Vec<races::Move> = taken.iter().map(|index| self.moves[*index]).collect();
        let came_to = self.begin.carry_out(&moves);
        Reached { taken, came_to }
    }
}

impl Model for Race {
    type State = Reached;
    type Action = usize;

    fn init_states(&self) -> Vec<Reached> {
        vec![self.carry_out(Vec::new())]
    }

    fn actions(&self, state: &Reached, actions: &mut Vec<usize>) {
        actions.extend((0..self.moves.len()).filter(|index| !state.taken.contains(index)));
    }

    fn next_state(&self, last: &Reached, action: usize) -> Option<Reached> {
        let mut taken = last.taken.clone();
        taken.push(action);
        Some(self.carry_out(taken))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("nothing is broken", |_, state: &Reached| state.came_to.broken.is_none()),
            Property::sometimes("something is refused", |_, state: &Reached| state.came_to.refused > 0),
        ];
        if self.moves.contains(&races::Move::Send) {
            let takes_place = |_: &Self, state: &Reached| state.came_to.effects > 0;
            properties.push(Property::sometimes("an effect takes place", takes_place));
        }
        properties
    }
}

/// Tries every interleaving; gives how many there were.
fn every_order_of(race: Race) -> usize {
    let checker = race.checker().spawn_bfs().join();
    if let Some(path) = checker.discovery("nothing is broken") {
        let state = path.last_state();
        let moves: Vec<races::Move> = state.taken.iter().map(|index| checker.model().moves[*index]).collect();
        panic!("{moves:?}: {:?}", state.came_to.broken);
    }
    checker.assert_properties();
    checker.unique_state_count()
}

/// 1 + n + n(n-1) + … : every path of up to `n` different moves.
fn paths(n: usize) -> usize {
    (0..=n).map(|length| (0..length).map(|taken| n - taken).product::<usize>()).sum()
}

#[test]
fn a_transfer_and_a_dispatch() {
    let moves = &[Move::Dispatch, Move::ConsentOfOne, Move::LeaseEnds, Move::Send];
    assert_eq!(every_order_of(Race { begin: Begin::new(true), moves }), paths(4));
}

#[test]
fn an_urgent_restriction_and_an_admission() {
    let moves = &[Move::Dispatch, Move::BecomesDurable, Move::Restrict, Move::Send];
    assert_eq!(every_order_of(Race { begin: Begin::new(false), moves }), paths(4));
}

#[test]
fn a_reservation_and_a_cancellation() {
    let moves = &[Move::Dispatch, Move::Restrict, Move::Send, Move::ToldNotSent];
    assert_eq!(every_order_of(Race { begin: Begin::new(false), moves }), paths(4));
}

#[test]
fn two_acceptances_of_one_handoff() {
    let moves = &[Move::ConsentOfOne, Move::ConsentOfOneAgain, Move::ConsentOfOther, Move::Dispatch];
    assert_eq!(every_order_of(Race { begin: Begin::new(false), moves }), paths(4));
}
