//! The three powers of an actor, by the kernel that the runtime stands on, and what the runtime gives one around a participant.

use crate::support::*;
use closer_actors::Options;
use closer_contracts::id::WorkId;
use closer_contracts::refusal::RefusalCode;
use closer_contracts::shows;
use closer_contracts::work::WorkResult;
use closer_scenarios::worker;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

/// An actor that counts in steps; it can be told to count otherwise from the next message on, and to make another.
struct Counter;

enum Told {
    Count,
    CountBy(u32),
    Make(RpcReplyPort<ActorRef<Told>>),
    Tell(ActorRef<Told>),
    HowMany(RpcReplyPort<u32>),
}

impl Actor for Counter {
    type Msg = Told;
    type State = (u32, u32);
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Told>, (): ()) -> Result<(u32, u32), ActorProcessingErr> {
        Ok((0, 1))
    }

    async fn handle(
        &self,
        myself: ActorRef<Told>,
        told: Told,
        state: &mut (u32, u32),
    ) -> Result<(), ActorProcessingErr> {
        match told {
            Told::Count => state.0 += state.1,
            Told::CountBy(step) => state.1 = step,
            Told::Make(reply) => {
                let (made, _) = Actor::spawn_linked(None, Self, (), myself.get_cell()).await?;
                reply.send(made)?;
            }
            Told::Tell(other) => other.send_message(Told::Count)?,
            Told::HowMany(reply) => reply.send(state.0)?,
        }
        Ok(())
    }
}

async fn how_many(actor: &ActorRef<Told>) -> u32 {
    ractor::call!(actor, Told::HowMany).unwrap()
}

#[tokio::test]
async fn an_actor_sends_messages() {
    shows!("CP-3.1-01");
    let (one, _) = Actor::spawn(None, Counter, ()).await.unwrap();
    let (other, _) = Actor::spawn(None, Counter, ()).await.unwrap();
    one.send_message(Told::Tell(other.clone())).unwrap();
    assert_eq!(how_many(&one).await, 0);
    assert_eq!(how_many(&other).await, 1);
}

#[tokio::test]
async fn an_actor_creates_actors() {
    shows!("CP-3.1-01");
    let (one, _) = Actor::spawn(None, Counter, ()).await.unwrap();
    let made = ractor::call!(one, Told::Make).unwrap();
    made.send_message(Told::Count).unwrap();
    assert_eq!((how_many(&made).await, how_many(&one).await), (1, 0));
}

#[tokio::test]
async fn an_actor_sets_how_it_meets_its_next_message() {
    shows!("CP-3.1-01");
    let (one, _) = Actor::spawn(None, Counter, ()).await.unwrap();
    for told in [Told::Count, Told::CountBy(10), Told::Count] {
        one.send_message(told).unwrap();
    }
    assert_eq!(how_many(&one).await, 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_answer_it_is_and_to_what_is_the_runtimes_to_say() {
    shows!("CP-3.1-02", "CP-C6-08"; by "work.answers_other_work");
    let founding = founding(&[("o-1", "service-a", "p-1")]);
    let another: Answer =
        Box::new(|work| Ok(WorkResult { work_id: WorkId::from("work-of-another"), ..worker::nothing(work) }));
    let place = Place::found(&founding, another).await;
    let runtime = place.start(Options::default()).await;
    let handle = runtime.handle();
    send(&handle, "service-a", "e-1").await;
    settle(&handle).await;
    let view = handle.view();
    assert!(view.results.is_empty(), "an answer that names other work than it was asked with is none");
    let told: Vec<&str> = view.failed.values().map(|(_, reason)| reason.as_str()).collect();
    assert!(told.iter().any(|reason| reason.contains("the answer is to other work")), "{told:?}");
    assert_eq!(view.episodes.len(), 1);
    drop(handle);
    runtime.stop().await.unwrap();
    assert!(place.refusals().await.contains(&RefusalCode::UnresolvedRef));
}
