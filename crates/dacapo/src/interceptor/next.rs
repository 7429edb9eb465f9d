//! The rest of a chain of interceptors.

use std::sync::Arc;

use crate::Interceptor;

/// The rest of a chain of interceptors: those that were added after this one, and then the call itself.
pub struct Next<C, R>(Box<dyn FnOnce(C) -> R + Send>);

impl<C: 'static, R: 'static> Next<C, R> {
    /// Makes the call.
    pub fn run(self, call: C) -> R {
        (self.0)(call)
    }

    /// Wraps a call in interceptors, the first outermost.
    pub(crate) fn chain(
        interceptors: &Arc<[Arc<dyn Interceptor>]>,
        wrap: fn(&dyn Interceptor, C, Self) -> R,
        call: impl FnOnce(C) -> R + Send + 'static,
    ) -> Self {
        Self::inside(interceptors.clone(), 0, wrap, Box::new(call))
    }

    fn inside(
        interceptors: Arc<[Arc<dyn Interceptor>]>,
        place: usize,
        wrap: fn(&dyn Interceptor, C, Self) -> R,
        call: Box<dyn FnOnce(C) -> R + Send>,
    ) -> Self {
        let Some(interceptor) = interceptors.get(place).cloned() else { return Self(call) };
        let next = Self::inside(interceptors, place + 1, wrap, call);
        Self(Box::new(move |call| wrap(&*interceptor, call, next)))
    }
}
