//! `parallel`: branches that are units of their own.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::branches::{Crew, Handover};
use crate::{Ctx, Payload, Seg};

impl Ctx {
    /// Plays each branch as a unit of its own, from the next round on, and returns all their outputs in order. Every
    /// branch is played to its end, even if others fail. Dropping the future aborts the branches.
    #[track_caller]
    pub fn parallel<I>(&self, branches: I) -> Parallel<<I::Item as Future>::Output>
    where
        I: IntoIterator,
        I::Item: Future + Send + 'static,
        <I::Item as Future>::Output: Send + 'static,
    {
        let site = Location::caller();
        // The iterator is user code: it runs before the lock is taken.
        let branches: Vec<I::Item> = branches.into_iter().collect();
        let outputs: Vec<_> = branches.iter().map(|_| Handover::new()).collect();
        let Some(mut state) = self.shared.enter(site) else {
            return Parallel { crew: Crew::inert(self.shared.clone()), outputs };
        };
        let mut crew = Crew::new(self.shared.clone(), &mut state, site);
        let scope = state.scope;
        for (branch, output) in branches.into_iter().zip(outputs.iter().cloned()) {
            crew.spawn(&mut state, Seg::P, scope, async move {
                output.put(branch.await);
                Ok(Payload::empty())
            });
        }
        drop(state);
        Parallel { crew, outputs }
    }
}

/// Branches that are being played: await it for all their outputs.
#[must_use = "dropping it gives the branches up; await it"]
pub struct Parallel<T> {
    crew: Crew,
    outputs: Vec<Handover<T>>,
}

impl<T> Future for Parallel<T> {
    type Output = Vec<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Vec<T>> {
        match ready!(self.crew.poll_done(cx)) {
            Ok(()) => Poll::Ready(self.outputs.iter().filter_map(Handover::take).collect()),
            // Only a future that was moved out of its run gets here, and there are no outputs for it.
            Err(_) => Poll::Pending,
        }
    }
}
