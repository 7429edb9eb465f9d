//! Calls of other nodes: this node owns their run, and carries them out.

use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

use dacapo_client::{ClientCall, ClientReply, Error};
use dacapo_sync::{Mutex, ranks};

use crate::host::WorkKind;
use crate::nodes::hand_over::moved;
use crate::shared::Shared;

type Answer = Result<ClientReply, Error>;

/// Carries a call out for another node.
pub(crate) fn called(shared: &Arc<Shared>, request: &[u8], answer: Box<dyn FnOnce(Vec<u8>) + Send>) {
    let call = match serde_json::from_slice::<ClientCall>(request) {
        Ok(call) => call,
        Err(error) => {
            let refused: Answer = Err(Error::Unavailable(format!("the owner cannot read the call: {error}")));
            return answer(serde_json::to_vec(&refused).unwrap_or_default());
        }
    };
    let client = (shared.client)(shared);
    let this = Arc::downgrade(shared);
    let work = async move {
        // The first part runs on a thread that may block.
        let reply: Answer = match check_owner(&this, &call) {
            Ok(()) => call.send(&*client, Box::new(|_| {})).await,
            Err(error) => Err(error),
        };
        answer(serde_json::to_vec(&reply).unwrap_or_default());
    };
    Called::begin(Arc::downgrade(shared), work);
}

/// Refuses a call for a run that this process owns no longer.
fn check_owner(shared: &Weak<Shared>, call: &ClientCall) -> Result<(), Error> {
    let (Some(shared), Some(run)) = (shared.upgrade(), call.run()) else { return Ok(()) };
    if let Some(nodes) = shared.nodes() {
        nodes.confirm_lease()?;
    }
    let row = shared.store().find(&run.workflow_id, run.run_id.as_deref())?;
    let is_elsewhere = row.is_some_and(|row| row.status.is_open() && !shared.owns(row.no));
    if is_elsewhere { Err(moved()) } else { Ok(()) }
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
