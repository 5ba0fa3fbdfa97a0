//! One call to a port, as an actor: it dies alone.

use closer_protocol::port::Pending;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef};
use std::marker::PhantomData;

/// The actor of one call.
pub(crate) struct Call<T>(PhantomData<fn() -> T>);

impl<T> Default for Call<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// A call to make, and whom to tell what came of it.
pub(crate) struct Calling<T> {
    pub(crate) call: Pending<'static, T>,
    pub(crate) tell: Box<dyn FnOnce(ActorId, T) + Send>,
}

impl<T: Send + 'static> Actor for Call<T> {
    type Msg = ();
    type State = Option<Calling<T>>;
    type Arguments = Calling<T>;

    async fn pre_start(
        &self,
        myself: ActorRef<()>,
        calling: Calling<T>,
    ) -> Result<Option<Calling<T>>, ActorProcessingErr> {
        myself.send_message(())?;
        Ok(Some(calling))
    }

    async fn handle(
        &self,
        myself: ActorRef<()>,
        _: (),
        calling: &mut Option<Calling<T>>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(Calling { call, tell }) = calling.take() {
            tell(myself.get_id(), call.await);
        }
        myself.stop(None);
        Ok(())
    }
}
