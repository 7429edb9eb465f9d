//! Fakes: replacements for activities in a test, which record their calls.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use dacapo::{ActivityCtx, ActivityInfo, ActivityType, Converter, Failure, Layers, Payload, Timestamp};
use dacapo_worker::{Activity, ActivityFuture};
use parking_lot::{Mutex, MutexGuard};

use crate::virtual_time::{Sleep, VirtualTime};

/// A replacement for an activity. It records every attempt, also across crashes: a fake outlives processes.
///
/// ```
/// # use dacapo::prelude::*;
/// # use dacapo_testkit::Kit;
/// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
/// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
/// let mut kit = Kit::new();
/// let charges = kit.fake(charge, |_| Ok(()));
/// kit.run(pay, 500).unwrap();
/// assert_eq!((charges.count(), charges.calls()), (1, vec![500]));
/// assert_eq!(charges.attempts()[0].attempt, 1);
/// ```
pub struct Fake<A> {
    calls: Arc<Mutex<Vec<Called>>>,
    converter: Converter,
    activity: PhantomData<fn() -> A>,
}

#[derive(Clone, Debug)]
struct Called {
    info: ActivityInfo,
    input: Vec<Payload>,
}

impl<A> Clone for Fake<A> {
    fn clone(&self) -> Self {
        Self { calls: self.calls.clone(), converter: self.converter.clone(), activity: PhantomData }
    }
}

impl<A> fmt::Debug for Fake<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Fake").field(&self.lock()).finish()
    }
}

impl<A> Fake<A> {
    fn lock(&self) -> MutexGuard<'_, Vec<Called>> {
        self.calls.lock()
    }

    /// Returns how many attempts there were.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Returns facts about each attempt, in order.
    pub fn attempts(&self) -> Vec<ActivityInfo> {
        self.lock().iter().map(|called| called.info.clone()).collect()
    }
}

impl<A: ActivityType> Fake<A> {
    /// Creates a fake with this answer, and the answer as the kit registers it.
    pub(crate) fn new<F, P>(converter: &Converter, answer: F) -> (Self, FakeCode)
    where
        F: Fn(FakeCtx, A::Input) -> P + Send + Sync + 'static,
        P: Future<Output = Result<A::Output, Failure>> + Send + 'static,
    {
        let fake = Self { calls: Arc::default(), converter: converter.clone(), activity: PhantomData };
        let calls = fake.clone();
        let answer: FakeCode = Arc::new(move |ctx, input| {
            calls.lock().push(Called { info: ctx.info().clone(), input: input.clone() });
            let converter = calls.converter.clone();
            let output = A::decode(input, &converter).map(|input| answer(ctx, input));
            Box::pin(async move { converter.encode(&output?.await?) })
        });
        (fake, answer)
    }

    /// Returns the input of each attempt, in order.
    ///
    /// # Panics
    /// If an attempt was given an input that does not decode, with the reason.
    #[track_caller]
    pub fn calls(&self) -> Vec<A::Input> {
        let calls: Vec<Called> = self.lock().clone();
        let decode = |called: Called| match A::decode(called.input, &self.converter) {
            Ok(input) => input,
            Err(failure) => panic!("attempt {} of activity {:?}: {failure}", called.info.attempt, A::NAME),
        };
        calls.into_iter().map(decode).collect()
    }
}

/// The ctx of a fake: the activity's own ctx, with heartbeats, details, attempt number and cancellation, on virtual time.
///
/// Sleeping takes no real time. Use no other timers in a fake. See [`Kit::fake_with`](crate::Kit::fake_with) for an example.
#[derive(Clone, Debug)]
pub struct FakeCtx {
    ctx: ActivityCtx,
    time: Time,
}

#[derive(Clone)]
struct Time(Arc<VirtualTime>);

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.now().fmt(f)
    }
}

impl FakeCtx {
    /// Sleeps for this much virtual time. As with other timers, a cancelled attempt sleeps on if the workflow waits for
    /// its end; look at the result of [`heartbeat`](ActivityCtx::heartbeat) or at
    /// [`cancellation`](ActivityCtx::cancellation) afterwards.
    pub fn sleep(&self, time: Duration) -> Sleep {
        self.time.0.sleep(time)
    }

    /// Never returns: an attempt that hangs until a timeout or a cancellation ends it.
    pub async fn hang<T>(&self) -> T {
        std::future::pending().await
    }

    /// Returns the current virtual time.
    pub fn now(&self) -> Timestamp {
        self.time.0.now()
    }
}

impl Deref for FakeCtx {
    type Target = ActivityCtx;

    fn deref(&self) -> &ActivityCtx {
        &self.ctx
    }
}

/// The code of a fake.
pub(crate) type FakeCode = Arc<dyn Fn(FakeCtx, Vec<Payload>) -> ActivityFuture + Send + Sync>;

/// All fakes of a kit, by the name of the activity. The last fake of an activity answers.
#[derive(Clone)]
pub(crate) struct Fakes {
    time: Arc<VirtualTime>,
    answers: Arc<Mutex<BTreeMap<&'static str, FakeCode>>>,
}

impl Fakes {
    pub(crate) fn on(time: Arc<VirtualTime>) -> Self {
        Self { time, answers: Arc::default() }
    }

    /// Sets the answer of an activity, from its next attempt on. Returns whether it is the activity's first fake.
    pub(crate) fn set(&self, activity: &'static str, answer: FakeCode) -> bool {
        self.answers.lock().insert(activity, answer).is_none()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.answers.lock().is_empty()
    }

    pub(crate) fn contains(&self, activity: &str) -> bool {
        self.answers.lock().contains_key(activity)
    }

    /// Returns all fakes as activities to register.
    pub(crate) fn activities(&self, layers: &Layers) -> Vec<Activity> {
        let names: Vec<&'static str> = self.answers.lock().keys().copied().collect();
        names.into_iter().map(|name| layers.around_activity(self.activity(name, layers))).collect()
    }

    fn activity(&self, name: &'static str, layers: &Layers) -> Activity {
        let (fakes, layers) = (self.clone(), layers.clone());
        Activity::new(name, move |ctx, input| {
            fakes.time.begin_fake();
            let answer = fakes.answers.lock()[name].clone();
            answer(FakeCtx { ctx: layers.activity_ctx(ctx), time: Time(fakes.time.clone()) }, input)
        })
    }
}
