//! Fakes: replacements for activities in a test, which record their calls.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use dacapo::{ActivityInfo, ActivityType, Failure, Payload};
use dacapo_worker::Activity;
use parking_lot::{Mutex, MutexGuard};

/// A replacement for an activity. It records every attempt, also across crashes: a fake outlives processes.
pub struct Fake<A> {
    calls: Arc<Mutex<Vec<Called>>>,
    activity: PhantomData<fn() -> A>,
}

#[derive(Clone, Debug)]
struct Called {
    info: ActivityInfo,
    input: Vec<Payload>,
}

impl<A> Clone for Fake<A> {
    fn clone(&self) -> Self {
        Self { calls: self.calls.clone(), activity: PhantomData }
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
    /// Creates a fake that answers with `answer`, and the activity to register.
    pub(crate) fn new<F>(answer: F) -> (Self, Activity)
    where
        F: Fn(A::Input) -> Result<A::Output, Failure> + Send + Sync + 'static,
    {
        let fake = Self { calls: Arc::default(), activity: PhantomData };
        let calls = fake.clone();
        let activity = Activity::blocking(A::NAME, move |ctx, input| {
            calls.lock().push(Called { info: ctx.info().clone(), input: input.clone() });
            answer(A::decode(input)?).and_then(|output| dacapo::encode(&output))
        });
        (fake, activity)
    }

    /// Returns the input of each attempt, in order.
    pub fn calls(&self) -> Vec<A::Input> {
        let decode = |called: &Called| A::decode(called.input.clone()).expect("it was decoded when it came");
        self.lock().iter().map(decode).collect()
    }
}
