//! What an app puts around its code: a payload converter and interceptors.

use std::fmt;
use std::sync::Arc;

use dacapo_core::Payload;
use dacapo_worker::ActivityInfo;

use crate::{ActivityCtx, Converter, Interceptor};

/// The payload converter and the interceptors of an app. Cheap to clone.
#[derive(Clone, Default)]
pub struct Layers {
    /// Encodes and decodes typed values.
    pub converter: Converter,
    /// The interceptors, the outermost first.
    pub interceptors: Arc<[Arc<dyn Interceptor>]>,
}

impl Layers {
    /// Adds an interceptor, inside those that were added before.
    pub fn intercept(&mut self, interceptor: impl Interceptor) {
        let added: Arc<dyn Interceptor> = Arc::new(interceptor);
        self.interceptors = self.interceptors.iter().cloned().chain([added]).collect();
    }

    /// Adds types to the ctx of a worker.
    #[doc(hidden)]
    pub fn activity_ctx(&self, raw: dacapo_worker::ActivityCtx) -> ActivityCtx {
        let interceptors = self.interceptors.clone();
        let report = move |info: &ActivityInfo, details: &mut Payload| {
            interceptors.iter().for_each(|interceptor| interceptor.heartbeat(info, details));
        };
        let hook = (!self.interceptors.is_empty()).then(|| Arc::new(report) as _);
        ActivityCtx::new(raw, self.converter.clone(), hook)
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layers({:?}, {} interceptors)", self.converter, self.interceptors.len())
    }
}
