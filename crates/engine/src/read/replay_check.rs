//! The replay check: open runs are played again with the code at hand, before anything wakes them. Nothing is changed
//! or logged; the caller gets the runs that the code cannot play.

use std::collections::VecDeque;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use dacapo_client::{Error, Unplayable};
use dacapo_core::{Timestamp, Watch};
use dacapo_store::{Doing, Filter, ListPlace, RunNo, RunRow, Status, StoreError, StuckCause};
use dacapo_worker::{Deadlock, DeadlockWatch, GiveUp, RunToPlay, StuckPlay, TurnHost, WatchedTurn, Worker};

use crate::crash_guard::count::quarantine_reason;
use crate::engine::Engine;
use crate::host::blocking::no_thread;
use crate::options::Options;
use crate::read::Reader;
use crate::report::stuck_reason::StuckReason;
use crate::run::open_operations::OpenOperations;
use crate::turn::replay::{Replayed, new_instance, replay};
use crate::workers::Workers;

/// The number of runs that are played between two reports of progress.
const PAGE: usize = 100;

impl Engine {
    /// Plays every open run of the served queues again, and returns those that the code at hand cannot play.
    pub fn check_open_runs(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Unplayable>, Error> {
        self.reader().check_open_runs(&self.shared.options, progress)
    }
}

impl Reader {
    /// Plays every open run of the queues in these options again, with the code in them, and returns those that it
    /// cannot play. `progress` is called with the number of runs that were played. Blocks until it is done.
    pub fn check_open_runs(&self, options: &Options, progress: &mut dyn FnMut(u64)) -> Result<Vec<Unplayable>, Error> {
        dacapo_core::keep_panic_places();
        let host = CheckHost { watch: DeadlockWatch::new().map_err(no_thread)?, began: Instant::now() };
        let check = Arc::new(Check {
            reader: self.clone(),
            options: options.clone(),
            workers: Workers::new(&options.queues, &options.default_queue, &options.registry),
            host: Arc::new(host),
        });
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (0..count).map(|_| CheckThread::new(&check).map_err(no_thread));
        let mut threads: Vec<CheckThread> = threads.collect::<Result<_, _>>()?;
        let open = Filter { status: Some(Status::Open), ..Filter::default() };
        let (mut before, mut played, mut found) = (None, 0, Vec::new());
        loop {
            let rows = self.store().list(&open, before.map(ListPlace::from), PAGE)?;
            let (last, is_full) = (rows.last().map(|row| row.no), rows.len() == PAGE);
            let mut rows: VecDeque<RunRow> =
                rows.into_iter().filter(|row| options.queues.contains_key(&row.queue)).collect();
            played += rows.len() as u64;
            let share = rows.len().div_ceil(count);
            let found_here = std::thread::scope(|scope| {
                let parts = threads.iter_mut().map(|thread| {
                    let (part, check) = (rows.drain(..share.min(rows.len())).collect(), &check);
                    scope.spawn(move || thread.check_all(check, part))
                });
                // All are started before the first is waited for.
                let parts: Vec<_> = parts.collect();
                let ended = parts.into_iter().map(|part| part.join().expect("a check does not panic"));
                ended.collect::<Result<Vec<_>, Error>>()
            });
            found.extend(found_here?.into_iter().flatten());
            progress(played);
            match last {
                Some(last) if is_full => before = Some(last),
                _ => return Ok(found),
            }
        }
    }
}

/// The data that the threads of a replay check share.
struct Check {
    reader: Reader,
    options: Options,
    workers: Workers,
    host: Arc<dyn TurnHost>,
}

enum Checked {
    /// The run was played to the end of its record, or could not be, for this reason.
    Played(Result<Option<StuckReason>, StoreError>),
    /// The run did not return in time.
    Deadlock(StuckReason),
}

/// A thread without an async runtime, like those on which turns are played.
struct CheckThread {
    runs: mpsc::Sender<RunRow>,
    checked: mpsc::Receiver<(RunNo, Checked)>,
}

impl CheckThread {
    fn new(check: &Arc<Check>) -> std::io::Result<Self> {
        let (runs, next) = mpsc::channel::<RunRow>();
        let (tell, checked) = mpsc::channel();
        let check = check.clone();
        std::thread::Builder::new().name("dacapo-replay-check".to_owned()).spawn(move || {
            for row in next {
                let played = Checked::Played(check.play(&row, &tell));
                if tell.send((row.no, played)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { runs, checked })
    }

    /// Plays runs, one after the other.
    fn check_all(&mut self, check: &Arc<Check>, rows: Vec<RunRow>) -> Result<Vec<Unplayable>, Error> {
        let mut found = Vec::new();
        for row in rows {
            let (workflow_id, run_id) = (row.workflow_id.clone(), row.run_id.clone());
            let workflow = row.workflow.clone();
            let reason = match self.check(row) {
                Checked::Played(result) => result?,
                Checked::Deadlock(reason) => {
                    // The thread that plays the run may never return.
                    *self = Self::new(check).map_err(no_thread)?;
                    Some(reason)
                }
            };
            found.extend(reason.map(|StuckReason { cause, subject, text }| {
                Unplayable::new(workflow_id, run_id, workflow, text).caused_by(cause, subject)
            }));
        }
        Ok(found)
    }

    fn check(&self, row: RunRow) -> Checked {
        let no = row.no;
        // If the thread is gone, the receiver notices.
        let _ = self.runs.send(row);
        // The watch may have given up on the previous run in the moment in which it returned.
        let of_this = self.checked.iter().find(|(of, _)| *of == no);
        let ended = || StuckReason::of_text(StuckCause::Internal, "the thread that played it has ended");
        of_this.map_or_else(|| Checked::Deadlock(ended()), |(_, checked)| checked)
    }
}

/// A note that code runs, until this is dropped.
struct Note<'a>(&'a Reader, dacapo_store::NoteSlot);

impl Drop for Note<'_> {
    fn drop(&mut self) {
        self.0.store().ended(self.1);
    }
}

impl Check {
    /// Plays a run again. Returns the reason if it cannot be played.
    fn play(&self, row: &RunRow, tell: &mpsc::Sender<(RunNo, Checked)>) -> Result<Option<StuckReason>, StoreError> {
        if self.options.crash_limits.quarantines(row.crash_count) {
            return Ok(Some(quarantine_reason(row)));
        }
        let (info, mut run) = match new_instance(&self.options, row, |_| None) {
            Ok(instance) => instance,
            Err(reason) => return Ok(Some(reason)),
        };
        let (tell, no) = (tell.clone(), row.no);
        let hand_over = move |deadlock: Deadlock, _: StuckPlay| {
            drop(tell.send((no, Checked::Deadlock(StuckReason::from(deadlock)))));
        };
        let note = self.reader.store().began(Doing::Run(row.no)).map(|slot| Note(&self.reader, slot));
        let to_play = RunToPlay { name: &info.name, run: &mut run, note, hand_over: Box::new(hand_over) };
        let mut play = self.workers.of(&row.queue).play(&self.host, to_play);
        let replayed = replay(self.reader.store(), row, None, &mut play, &mut OpenOperations::default())?;
        Ok(match replayed {
            Replayed::Stuck(reason) => Some(reason),
            Replayed::Ready(_) | Replayed::TakenOver => None,
        })
    }
}

/// The host of the turn driver in a process that only checks.
struct CheckHost {
    watch: DeadlockWatch,
    began: Instant,
}

impl TurnHost for CheckHost {
    fn watch(&self, turn: Watch, limit: Duration, give_up: GiveUp) -> Option<WatchedTurn> {
        Some(self.watch.begin(turn, limit, give_up))
    }

    fn steady_now(&self) -> Timestamp {
        Timestamp::default().after(self.began.elapsed())
    }

    fn terminations_changed(&self, _: &Arc<Worker>) {}
}
