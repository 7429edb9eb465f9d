//! What a ctx answers at once: time, randomness, facts, choices, patches.

use dacapo_core::{Info, Name, OperationId, Timestamp};

use crate::Ctx;

impl<S> Ctx<S> {
    /// The time of this turn. It stands still while the turn is played, and never goes back.
    #[track_caller]
    pub fn now(&self) -> Timestamp {
        self.raw.now()
    }

    /// Facts about the run. Code must not decide by [`Info::replaying`].
    #[track_caller]
    pub fn info(&self) -> Info {
        self.raw.info().unwrap_or_default()
    }

    /// A random number from 0 up to, but not including, 1; the same on every replay.
    #[track_caller]
    pub fn random(&self) -> f64 {
        self.raw.random()
    }

    /// 64 random bits, the same on every replay. Each unit has its own stream.
    #[track_caller]
    pub fn random_u64(&self) -> u64 {
        self.raw.random_u64()
    }

    /// A random UUID, the same on every replay.
    #[track_caller]
    pub fn uuid(&self) -> OperationId {
        self.raw.uuid()
    }

    /// Picks one of `n` branches, from 0; those not picked never start. The policy decides: the deterministic one takes the
    /// first, a random one explores, and whatever it picked is recorded and replayed.
    #[doc(hidden)]
    #[track_caller]
    pub fn choose(&self, n: u32) -> u32 {
        self.raw.choose(n)
    }

    /// Whether to take the path that this patch introduced: true for runs that reach it for the first time, and on replay
    /// for those that took it. The answer to the first question holds for the whole run.
    #[track_caller]
    pub fn patched(&self, id: impl Into<Name>) -> bool {
        self.raw.patched(id)
    }

    /// Says that the path before this patch is gone from the code. Once no run that took it is left, the call can go too:
    /// removing it shifts nothing.
    #[track_caller]
    pub fn deprecate_patch(&self, id: impl Into<Name>) {
        self.raw.deprecate_patch(id);
    }
}
