//! When activities ran: the clock of W3, whose steps cannot be seen outside the workflow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Work between two steps, which no clock measures.
pub type Pause = Box<dyn FnMut() + Send>;

static ON: AtomicBool = AtomicBool::new(false);
static TICKS: Mutex<Option<Ticks>> = Mutex::new(None);

struct Ticks {
    steps: Vec<Duration>,
    left: Option<Instant>,
    /// After every so many steps.
    every: usize,
    pause: Pause,
}

/// An activity runs. Every activity that is measured calls this.
pub fn tick() {
    if !ON.load(Ordering::Relaxed) {
        return;
    }
    let arrived = Instant::now();
    if let Some(ticks) = lock().as_mut() {
        if let Some(left) = ticks.left {
            ticks.steps.push(arrived - left);
            if ticks.steps.len().is_multiple_of(ticks.every) {
                (ticks.pause)();
            }
        }
        ticks.left = Some(Instant::now());
    }
}

/// From here on the time between one activity and the next is noted, without what `pause` takes after every so many.
pub fn begin(every: usize, pause: Pause) {
    let ticks = Ticks { steps: Vec::new(), left: None, every: every.max(1), pause };
    *lock() = Some(ticks);
    ON.store(true, Ordering::Relaxed);
}

/// The times that were noted, and the end of noting them.
pub fn end() -> Vec<Duration> {
    ON.store(false, Ordering::Relaxed);
    lock().take().map_or_else(Vec::new, |ticks| ticks.steps)
}

fn lock() -> MutexGuard<'static, Option<Ticks>> {
    TICKS.lock().expect("a pause between two steps panicked")
}
