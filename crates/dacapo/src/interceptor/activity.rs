//! Attempts of activities inside interceptors.

use dacapo_core::Payload;
use dacapo_worker::{Activity, ActivityCode};

use crate::activity::block_on;
use crate::interceptor::{CodeFuture, Next};
use crate::{ActivityCtx, Layers};

/// An attempt of an activity.
pub struct ActivityCall {
    /// The ctx of the attempt: its facts, its headers.
    pub ctx: ActivityCtx,
    /// The arguments.
    pub input: Vec<Payload>,
}

impl Layers {
    /// Puts the interceptors around an activity, as registering it does.
    #[doc(hidden)]
    #[must_use]
    pub fn around_activity(&self, activity: Activity) -> Activity {
        intercepted_activity(activity, self)
    }
}

/// Puts the app's interceptors around an activity.
pub(crate) fn intercepted_activity(activity: Activity, layers: &Layers) -> Activity {
    if layers.interceptors.is_empty() {
        return activity;
    }
    let name = activity.name().clone();
    let layers = layers.clone();
    match activity.code().clone() {
        ActivityCode::Async(code) => Activity::new(name, move |ctx, input| {
            let code = code.clone();
            wrap(&layers, ctx, input, move |call| code(call.ctx.into_raw(), call.input))
        }),
        ActivityCode::Blocking(code) => Activity::blocking(name, move |ctx, input| {
            let code = code.clone();
            block_on(wrap(&layers, ctx, input, move |call| {
                Box::pin(async move { code(call.ctx.into_raw(), call.input) })
            }))
        }),
    }
}

fn wrap(
    layers: &Layers,
    ctx: dacapo_worker::ActivityCtx,
    input: Vec<Payload>,
    code: impl FnOnce(ActivityCall) -> CodeFuture + Send + 'static,
) -> CodeFuture {
    let call = ActivityCall { ctx: layers.activity_ctx(ctx), input };
    Next::chain(&layers.interceptors, |interceptor, call, next| interceptor.activity(call, next), code).run(call)
}
