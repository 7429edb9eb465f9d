//! The deadlock watch: it gives up on a turn that does not return in time.
//!
//! Workflow code only decides, so a turn is over in microseconds; one that takes seconds blocks, spins or waits for a
//! lock. Time in which its thread only waited for a processor does not count, where the system tells (`schedstat` on
//! Linux). Nor does time by which the watch itself is late. A long replay is many turns, and each has its own time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use dacapo_core::{CallSite, DurationText, Watch};
use dacapo_sync::{Condvar, Mutex, MutexGuard, ranks};

use crate::TurnThread;

/// How long the watch sleeps between two looks, while turns are played.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The callback for a turn that the watch gives up on. It runs on the watch's own thread and must not block.
pub type GiveUp = Box<dyn FnOnce(Deadlock) + Send>;

/// A turn that did not return.
#[derive(Clone, Debug)]
pub struct Deadlock {
    /// The report: what happened, where, and what to do.
    pub reason: String,
    /// The last call of the ctx before it, if there was one.
    pub site: Option<CallSite>,
    /// The watch on the run, to stop the turn.
    pub watch: Watch,
}

/// The deadlock watch.
pub struct DeadlockWatch {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    came: Condvar,
}

impl Default for Shared {
    fn default() -> Self {
        Self { state: Mutex::new(ranks::DEADLOCK_WATCH, State::default()), came: Condvar::new() }
    }
}

#[derive(Default)]
struct State {
    turns: BTreeMap<u64, Watched>,
    next: u64,
    /// Whether the watch sleeps until a turn begins.
    sleeps: bool,
    stopped: bool,
}

struct Watched {
    /// Set when the thread no longer plays the run.
    over: Arc<AtomicBool>,
    began: Instant,
    /// How long a turn may take.
    limit: Duration,
    /// The time that its thread had waited for a processor when the watch first saw it.
    waited: Option<Duration>,
    /// By how much the watch was late since then.
    late: Duration,
    /// The number of the turn in its run.
    number: u64,
    watch: Watch,
    thread: Option<TurnThread>,
    give_up: GiveUp,
}

/// A thread's play of a run that is watched, until this is dropped.
pub struct WatchedTurn {
    shared: Weak<Shared>,
    number: u64,
    over: Arc<AtomicBool>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl DeadlockWatch {
    /// Creates a watch that watches no turn.
    pub fn new() -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let of_thread = shared.clone();
        std::thread::Builder::new().name("dacapo-watch".to_owned()).spawn(move || of_thread.serve())?;
        Ok(Self { shared })
    }

    /// Watches the turns of a run on this thread. The first begins now; a turn that takes longer than `limit` is given
    /// up on.
    pub fn begin(&self, watch: Watch, limit: Duration, give_up: GiveUp) -> WatchedTurn {
        let mut state = self.shared.lock();
        let number = state.next;
        state.next += 1;
        let thread = TurnThread::current();
        let (turn_number, began) = (watch.turn(), Instant::now());
        let (waited, late) = (None, Duration::ZERO);
        let over = Arc::<AtomicBool>::default();
        let of_watch = over.clone();
        let turn = Watched { over: of_watch, began, limit, waited, late, number: turn_number, watch, thread, give_up };
        state.turns.insert(number, turn);
        if std::mem::take(&mut state.sleeps) {
            self.shared.came.notify_one();
        }
        WatchedTurn { shared: Arc::downgrade(&self.shared), number, over }
    }

    /// Ends the watch.
    pub fn stop(&self) {
        self.shared.lock().stopped = true;
        self.shared.came.notify_all();
    }
}

impl Drop for DeadlockWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Drop for WatchedTurn {
    fn drop(&mut self) {
        // First, because `put_back` looks at this under the lock.
        self.over.store(true, Ordering::Release);
        let turn = self.shared.upgrade().and_then(|shared| shared.lock().turns.remove(&self.number));
        drop(turn);
    }
}

impl Shared {
    fn serve(&self) {
        loop {
            let mut state = self.lock();
            // With no turn to watch, the thread sleeps.
            state.sleeps = state.turns.is_empty();
            let asleep = state.sleeps;
            while state.sleeps && !state.stopped {
                self.came.wait(&mut state);
            }
            drop(state);
            if asleep && self.lock().stopped {
                return;
            }
            let began = Instant::now();
            let mut state = self.lock();
            let shortest = state.turns.values().map(|turn| turn.limit).min().unwrap_or(LONGEST_PAUSE);
            let pause = (shortest / 8).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            while !state.stopped && began.elapsed() < pause {
                self.came.wait_for(&mut state, pause.saturating_sub(began.elapsed()));
            }
            if state.stopped {
                return;
            }
            let late = began.elapsed().saturating_sub(pause);
            let stuck = self.look(&mut state, late);
            drop(state);
            for (number, turn) in stuck {
                if let Some(turn) = self.give_up(turn) {
                    self.put_back(number, turn);
                }
            }
        }
    }

    /// Takes the turns whose time is over.
    fn look(&self, state: &mut State, late: Duration) -> Vec<(u64, Watched)> {
        let mut stuck = Vec::new();
        for (number, turn) in &mut state.turns {
            turn.follow();
            let waited = turn.thread.as_ref().and_then(TurnThread::id).and_then(waited_for_processor);
            // If the watch itself did not get to run, no thread did: the process was stopped, or the machine slept.
            turn.late += late;
            let starved = waited.map_or(Duration::ZERO, |now| now.saturating_sub(*turn.waited.get_or_insert(now)));
            let excused = starved.max(turn.late);
            if turn.began.elapsed().saturating_sub(excused) >= turn.limit {
                stuck.push(*number);
            }
        }
        stuck.into_iter().filter_map(|number| Some((number, state.turns.remove(&number)?))).collect()
    }

    /// Watches a play again that has gone on after all.
    fn put_back(&self, number: u64, mut turn: Watched) {
        let mut state = self.lock();
        if !turn.over.load(Ordering::Acquire) {
            turn.restart();
            state.turns.insert(number, turn);
        }
    }

    /// Gives up on a turn; returns it if it has ended in this moment.
    fn give_up(&self, turn: Watched) -> Option<Watched> {
        let Watched { limit, number, watch, thread, .. } = &turn;
        let unit = watch.running().map_or_else(|| "between units".to_owned(), |unit| unit.named().to_string());
        let site = watch.site();
        let after = site.as_ref().map_or_else(|| "no call yet".to_owned(), |site| format!("the call at {site}"));
        let doing = thread.as_ref().and_then(TurnThread::id).and_then(doing).unwrap_or("its state is not known");
        // The run may be at its next turn.
        if watch.turn() != *number || !watch.abandon() {
            return Some(turn);
        }
        let replaced = thread.as_ref().map_or(Ok(()), TurnThread::abandon);
        let taken = match replaced {
            Ok(()) => String::new(),
            Err(error) => format!(" No thread could be started in its place: {error}."),
        };
        let reason = format!(
            "deadlock: turn {} did not return within {}; {unit}, after {after}; its thread: {doing}. \
             Workflow code must not block, sleep, spin or wait for locks: move that into an activity, or yield. The run is \
             played again from the beginning; the thread is abandoned.{taken}",
            number,
            DurationText(*limit),
        );
        let Watched { watch, give_up, .. } = turn;
        give_up(Deadlock { reason, site, watch });
        None
    }
}

impl Watched {
    /// Restarts the time when the play has gone on to its next turn.
    fn follow(&mut self) {
        if self.watch.turn() != self.number {
            self.restart();
        }
    }

    fn restart(&mut self) {
        (self.number, self.began) = (self.watch.turn(), Instant::now());
        (self.waited, self.late) = (None, Duration::ZERO);
    }
}

/// Returns how long a thread has been ready to run without a processor, in total.
fn waited_for_processor(thread: u32) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let nanos = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Describes what a thread is doing, as far as the system tells.
fn doing(thread: u32) -> Option<&'static str> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    let state = text.lines().find_map(|line| line.strip_prefix("State:"))?.trim().chars().next()?;
    Some(match state {
        'R' => "it computes (a loop that does not end?)",
        'S' => "it sleeps or waits for a lock",
        'D' => "it waits for a disk or a device",
        'T' | 't' => "it is stopped by a debugger or a signal",
        _ => "it is in a state that says nothing",
    })
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Run, RunOptions, Workflow};

    use super::*;

    /// Makes a run that was never played, whose turn began this long ago.
    fn watched(limit: Duration, ago: Duration) -> Watched {
        let workflow = Workflow::new("w", |_, _| async { Ok(dacapo_core::Payload::default()) });
        let run = Run::new(workflow, RunOptions::default()).unwrap();
        let began = Instant::now().checked_sub(ago).expect("the machine has run for a while");
        let watch = run.watch();
        Watched {
            over: Arc::default(),
            began,
            limit,
            waited: None,
            late: Duration::ZERO,
            number: watch.turn(),
            watch,
            thread: None,
            give_up: Box::new(|_| {}),
        }
    }

    /// Returns how many turns' time is over when the watch looks, late by this much.
    fn stuck(turns: Vec<Watched>, late: Duration) -> usize {
        let mut state = State { turns: (0..).zip(turns).collect(), ..State::default() };
        Shared::default().look(&mut state, late).len()
    }

    /// S3-43, C-36: each turn has the limit of its queue, and time in which no thread could run is not counted.
    #[test]
    fn a_turn_has_its_own_time_and_what_the_watch_is_late_by_is_not_counted() {
        let (ms, zero) = (Duration::from_millis, Duration::ZERO);
        let turns =
            || vec![watched(ms(2_000), ms(1_500)), watched(ms(2_000), ms(2_500)), watched(ms(9_000), ms(2_500))];
        assert_eq!(stuck(turns(), zero), 1);
        assert_eq!(stuck(turns(), ms(600)), 0, "the process was stopped for a while");
        assert_eq!(stuck(turns(), ms(400)), 1);
    }

    /// S3-43: a long replay is many turns, and each begins anew.
    #[test]
    fn a_player_that_is_at_another_turn_has_all_its_time_again() {
        let mut turn = watched(Duration::from_secs(2), Duration::from_secs(10));
        turn.number += 1;
        assert_eq!(stuck(vec![turn], Duration::ZERO), 0);
    }
}
