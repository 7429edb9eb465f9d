//! The clocks of a real host.
//!
//! Engine time is monotonic time plus an offset. A forward step of the machine's clock, or a resume from suspend, moves the
//! offset, so that timers of the time of day fire; after a backward step time continues from where it was. A new process
//! begins with the machine's clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use dacapo_core::Timestamp;

use crate::host::Steady;

/// The machine's clock; tests put another in its place.
pub type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Steps below this are the ordinary drift between the two clocks of a machine.
const STEP: Duration = Duration::from_millis(50);

/// Engine time and steady time.
pub(crate) struct Clocks {
    wall: WallClock,
    began: Instant,
    began_at: Timestamp,
    /// The nanoseconds by which engine time was moved forward since.
    ahead: AtomicU64,
}

impl Clocks {
    pub(crate) fn new(wall: WallClock) -> Self {
        let began_at = timestamp(wall());
        Self { wall, began: Instant::now(), began_at, ahead: AtomicU64::new(0) }
    }

    pub(crate) fn steady_now(&self) -> Steady {
        Steady(self.began_at.after(self.began.elapsed()))
    }

    pub(crate) fn now(&self) -> Timestamp {
        let ahead = self.ahead.load(Ordering::Acquire);
        self.steady_now().0.after(Duration::from_nanos(ahead))
    }

    /// Moves engine time forward if the machine's clock was set forward. Returns whether it was moved.
    pub(crate) fn follow(&self) -> bool {
        let wall = timestamp((self.wall)()).since(self.steady_now().0);
        let wall = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        let is_step = |ahead: u64| wall.saturating_sub(ahead) >= STEP.as_nanos() as u64;
        // Two threads may follow one step: the second finds it done.
        self.ahead.fetch_update(Ordering::AcqRel, Ordering::Acquire, |ahead| is_step(ahead).then_some(wall)).is_ok()
    }
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// A machine whose clock is set by the test.
    fn machine() -> (Arc<StdMutex<SystemTime>>, Clocks) {
        let wall = Arc::new(StdMutex::new(SystemTime::UNIX_EPOCH + 1_000_000 * HOUR));
        let read = wall.clone();
        (wall, Clocks::new(Arc::new(move || *read.lock().unwrap())))
    }

    #[test]
    fn engine_time_follows_a_forward_step_and_steady_time_does_not() {
        let (wall, clocks) = machine();
        let steady = clocks.steady_now();
        *wall.lock().unwrap() += 2 * HOUR;
        assert!(clocks.follow());
        assert!(clocks.now() >= timestamp(*wall.lock().unwrap()));
        assert!(clocks.steady_now().since(steady) < HOUR);
        assert!(!clocks.follow(), "it is where the machine's clock is");
    }

    #[test]
    fn engine_time_continues_after_a_backward_step_and_when_the_clock_is_set_right_again() {
        let (wall, clocks) = machine();
        let now = clocks.now();
        *wall.lock().unwrap() -= HOUR;
        assert!(!clocks.follow());
        assert!(clocks.now() >= now && clocks.now().since(now) < HOUR);
        *wall.lock().unwrap() += HOUR;
        clocks.follow();
        assert!(clocks.now().since(now) < HOUR, "the step back was never followed, so the step forward is none");
    }
}
