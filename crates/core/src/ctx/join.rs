//! Joins within one unit: all futures are awaited, none is a unit of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use super::woken::Woken;
use crate::Ctx;

impl Ctx {
    /// Awaits all futures and returns their outputs in order, however they end. They may borrow.
    pub fn join<F: Future>(&self, futures: impl IntoIterator<Item = F>) -> Join<F> {
        Join { children: Children::new(futures) }
    }

    /// Awaits all futures until one fails: then the others are dropped, which cancels them. They may borrow.
    pub fn try_join<T, E, F>(&self, futures: impl IntoIterator<Item = F>) -> TryJoin<F>
    where
        F: Future<Output = Result<T, E>>,
    {
        TryJoin { children: Children::new(futures) }
    }
}

struct ChildWaker {
    woken: Arc<Woken>,
    place: usize,
}

impl Wake for ChildWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.push(self.place);
        self.woken.wake_parent();
    }
}

struct Child<F> {
    future: Option<Pin<Box<F>>>,
    waker: Waker,
}

struct Children<F: Future> {
    children: Vec<Child<F>>,
    outputs: Vec<Option<F::Output>>,
    woken: Arc<Woken>,
    left: usize,
}

/// Outputs are never pinned; only the boxed futures are.
impl<F: Future> Unpin for Children<F> {}

impl<F: Future> Children<F> {
    fn new(futures: impl IntoIterator<Item = F>) -> Self {
        let woken = Arc::new(Woken::default());
        let children: Vec<Child<F>> = futures
            .into_iter()
            .enumerate()
            .map(|(place, future)| Child {
                future: Some(Box::pin(future)),
                waker: Waker::from(Arc::new(ChildWaker { woken: woken.clone(), place })),
            })
            .collect();
        let left = children.len();
        (0..left).for_each(|place| woken.push(place));
        Self { outputs: children.iter().map(|_| None).collect(), children, woken, left }
    }

    /// Polls the futures that were woken. Stops at the first output that `stop` accepts, and returns it.
    fn poll(&mut self, cx: &Context<'_>, stop: impl Fn(&F::Output) -> bool) -> Poll<Option<F::Output>> {
        self.woken.await_by(cx.waker());
        for place in self.woken.take() {
            let child = &mut self.children[place];
            let Some(future) = &mut child.future else { continue };
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&child.waker)) {
                child.future = None;
                self.left -= 1;
                if stop(&output) {
                    self.children.clear();
                    return Poll::Ready(Some(output));
                }
                self.outputs[place] = Some(output);
            }
        }
        if self.left == 0 { Poll::Ready(None) } else { Poll::Pending }
    }

    fn take_outputs(&mut self) -> impl Iterator<Item = F::Output> {
        std::mem::take(&mut self.outputs).into_iter().flatten()
    }
}

/// Futures awaited together: await it for all their outputs, in order.
#[must_use = "a join does nothing unless it is awaited"]
pub struct Join<F: Future> {
    children: Children<F>,
}

impl<F: Future> Future for Join<F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let children = &mut self.children;
        children.poll(cx, |_| false).map(|_| children.take_outputs().collect())
    }
}

/// Futures awaited together until one fails: await it for all their values, in order.
#[must_use = "a join does nothing unless it is awaited"]
pub struct TryJoin<F: Future> {
    children: Children<F>,
}

impl<T, E, F: Future<Output = Result<T, E>>> Future for TryJoin<F> {
    type Output = Result<Vec<T>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let children = &mut self.children;
        children.poll(cx, Result::is_err).map(|failed| match failed {
            Some(Err(error)) => Err(error),
            _ => children.take_outputs().collect(),
        })
    }
}
