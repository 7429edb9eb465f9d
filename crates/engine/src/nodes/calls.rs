//! Calls of clients that only the owner of a run can carry out, because it has the run in memory: another node sends them
//! to the owner, and hands on the answer.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use dacapo_client::{ClientCall, ClientReply, Error, RunRef};
use dacapo_store::{Recipient, RunNo};
use dacapo_sync::{Mutex, ranks};
use tokio::sync::oneshot;

use crate::api::row;
use crate::engine::Engine;
use crate::host::WorkKind;
use crate::nodes::hand_over::moved;
use crate::read::RunId;
use crate::shared::Shared;

/// How often a call that changes nothing is sent again because the owner has changed meanwhile.
const TRIES: usize = 20;

type Answer = Result<ClientReply, Error>;

impl Engine {
    /// Has a call carried out by the owner of its run. None: that is this process, or any can do it.
    pub(crate) async fn at_owner(
        &self,
        run: &RunRef,
        call: impl Fn() -> ClientCall,
    ) -> Result<Option<ClientReply>, Error> {
        if self.shared.nodes().is_none() || self.is_called {
            return Ok(None);
        }
        for _ in 0..TRIES {
            let Some(owned) = self.owned_elsewhere(run).await? else { return Ok(None) };
            let call = call();
            let may_repeat = changes_nothing(&call);
            match self.call_node(Recipient::OwnerOf(owned), &call).await {
                Err(Error::Unavailable(_)) if may_repeat => {}
                answer => return answer.map(Some),
            }
        }
        Err(moved())
    }

    /// Returns the number of a run that is open and that another node owns.
    async fn owned_elsewhere(&self, run: &RunRef) -> Result<Option<RunNo>, Error> {
        let of = RunId::from(run.clone());
        let row = self.blocking(WorkKind::Read, move |shared| row(shared, &of)).await?;
        Ok((row.status.is_open() && !self.shared.owns(row.no)).then_some(row.no))
    }

    async fn call_node(&self, to: Recipient, call: &ClientCall) -> Answer {
        let unreadable = |error: serde_json::Error| Error::Unavailable(format!("an answer cannot be read: {error}"));
        let request = serde_json::to_vec(call).map_err(unreadable)?;
        let (answer, answered) = oneshot::channel();
        self.blocking(WorkKind::Write, move |shared| {
            if let Some(nodes) = shared.nodes() {
                nodes.call(to, request, Box::new(move |result| drop(answer.send(result))));
            }
            Ok(())
        })
        .await?;
        let bytes = answered.await.map_err(|_| Error::ShutDown)??;
        serde_json::from_slice::<Answer>(&bytes).map_err(unreadable)?
    }
}

/// Whether a call may be carried out twice: it changes nothing, or it has an id by which the second is recognised.
const fn changes_nothing(call: &ClientCall) -> bool {
    use ClientCall::{Describe, Inspect, Query, Update, UpdateResult};
    matches!(call, Query(..) | Inspect(_) | Describe(_) | Update(..) | UpdateResult(..))
}

/// Carries a call out for another node.
pub(crate) fn called(shared: &Arc<Shared>, request: &[u8], answer: Box<dyn FnOnce(Vec<u8>) + Send>) {
    let call = match serde_json::from_slice::<ClientCall>(request) {
        Ok(call) => call,
        Err(error) => {
            let refused: Answer = Err(Error::Unavailable(format!("the owner cannot read the call: {error}")));
            return answer(serde_json::to_vec(&refused).unwrap_or_default());
        }
    };
    let engine = Engine::called(shared.clone());
    let weak = Arc::downgrade(shared);
    let work = async move {
        let reply: Answer = match engine.check_owner(&call).await {
            Ok(()) => call.send(&engine, Box::new(|_| {})).await,
            Err(error) => Err(error),
        };
        answer(serde_json::to_vec(&reply).unwrap_or_default());
    };
    Called::begin(weak, work);
}

impl Engine {
    /// Refuses a call for a run that this process owns no longer.
    async fn check_owner(&self, call: &ClientCall) -> Result<(), Error> {
        let Some(run) = call.run() else { return Ok(()) };
        match self.owned_elsewhere(run).await? {
            None => Ok(()),
            Some(_) => Err(moved()),
        }
    }
}

/// The work for a call, polled on threads of the engine: it waits for other threads and not for a runtime.
struct Called {
    shared: Weak<Shared>,
    state: Mutex<CallState>,
}

enum CallState {
    Waiting(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// A thread polls it.
    Polled,
    /// It was woken while a thread polled it.
    Woken,
    Ended,
}

impl Called {
    fn begin(shared: Weak<Shared>, work: impl Future<Output = ()> + Send + 'static) {
        let state = Mutex::new(ranks::CALLED, CallState::Waiting(Box::pin(work)));
        Arc::new(Self { shared, state }).wake();
    }

    fn poll(self: &Arc<Self>) {
        let mut work = {
            let mut state = self.state.lock();
            match mem::replace(&mut *state, CallState::Polled) {
                CallState::Waiting(work) => work,
                CallState::Polled | CallState::Woken => {
                    *state = CallState::Woken;
                    return;
                }
                CallState::Ended => {
                    *state = CallState::Ended;
                    return;
                }
            }
        };
        let polled = work.as_mut().poll(&mut Context::from_waker(&Waker::from(self.clone())));
        let mut state = self.state.lock();
        let before = match polled {
            Poll::Ready(()) => mem::replace(&mut *state, CallState::Ended),
            Poll::Pending => mem::replace(&mut *state, CallState::Waiting(work)),
        };
        drop(state);
        if matches!(before, CallState::Woken) {
            self.clone().wake();
        }
    }
}

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.later(WorkKind::Read, None, move |_| self.poll());
        }
    }
}
