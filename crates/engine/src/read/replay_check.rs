//! A rehearsal: open runs are played again with the code at hand, before anything wakes them. Nothing is changed, and nobody
//! hears of it but the caller.

use std::fmt;
use std::sync::{Arc, mpsc};

use dacapo_core::Name;
use dacapo_store::{Doing, RunFilter, RunNo, RunRow, Status, StoreError};
use dacapo_worker::{Deadlock, DeadlockWatch};

use crate::crash_guard::quarantine::{is_quarantined, words_on_run};
use crate::read::describe::Reader;
use crate::report::trace as traces;
use crate::turn::load::{Replayed, replay};
use crate::{Engine, EngineError, Options};

/// A run that the code at hand cannot play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplayable {
    /// The caller's name for it.
    pub workflow_id: Name,
    /// Its run id.
    pub run_id: Name,
    /// Its type.
    pub workflow: Name,
    /// What would happen, where, and what to do.
    pub reason: String,
}

impl fmt::Display for Unplayable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {:?} ({}) of {}: {}", self.workflow_id, self.run_id, self.workflow, self.reason)
    }
}

/// How many runs are played between two words on progress.
const PAGE: usize = 100;

impl Engine {
    /// Plays every open run of the served queues again, and gives those that the code at hand cannot play.
    pub fn check_open_runs(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Unplayable>, EngineError> {
        self.reader().check_open_runs(&self.inner.options, progress)
    }
}

impl Reader {
    /// Plays every open run of the queues in these options again, with the code in them, and gives those that it cannot
    /// play. `progress` is told how many were played. Blocks until it is done.
    pub fn check_open_runs(
        &self,
        options: &Options,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<Unplayable>, EngineError> {
        dacapo_core::keep_panic_places();
        let system = |error: std::io::Error| EngineError::NoThread(error.to_string());
        let stage = Arc::new(Stage {
            reader: self.clone(),
            options: options.clone(),
            watch: DeadlockWatch::new().map_err(system)?,
        });
        let mut player = Player::new(&stage).map_err(system)?;
        let open = RunFilter { status: Some(Status::Open), ..RunFilter::default() };
        let (mut before, mut played, mut found) = (None, 0, Vec::new());
        loop {
            let rows = self.store().list(&open, before, PAGE)?;
            let (last, is_full) = (rows.last().map(|row| row.no), rows.len() == PAGE);
            for row in rows.into_iter().filter(|row| options.queues.contains_key(&row.queue)) {
                let (workflow_id, run_id) = (row.workflow_id.clone(), row.run_id.clone());
                let workflow = row.workflow.clone();
                let reason = match player.play(row) {
                    Verdict::Played(result) => result?,
                    Verdict::Deadlock(reason) => {
                        // Its thread may never come back.
                        player = Player::new(&stage).map_err(system)?;
                        Some(reason)
                    }
                };
                found.extend(reason.map(|reason| Unplayable { workflow_id, run_id, workflow, reason }));
                played += 1;
            }
            progress(played);
            match last {
                Some(last) if is_full => before = Some(last),
                _ => return Ok(found),
            }
        }
    }
}

/// What is played, and who watches over it.
struct Stage {
    reader: Reader,
    options: Options,
    watch: DeadlockWatch,
}

enum Verdict {
    /// It was played to the end of its record, or could not be and says why.
    Played(Result<Option<String>, StoreError>),
    /// It did not return.
    Deadlock(String),
}

/// A thread of its own, without an async runtime, as turns are played on.
struct Player {
    runs: mpsc::Sender<RunRow>,
    verdicts: mpsc::Receiver<(RunNo, Verdict)>,
}

impl Player {
    fn new(stage: &Arc<Stage>) -> std::io::Result<Self> {
        let (runs, next) = mpsc::channel::<RunRow>();
        let (tell, verdicts) = mpsc::channel();
        let stage = stage.clone();
        std::thread::Builder::new().name("dacapo-rehearsal".to_owned()).spawn(move || {
            for row in next {
                let played = Verdict::Played(stage.play(&row, &tell));
                if tell.send((row.no, played)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { runs, verdicts })
    }

    fn play(&self, row: RunRow) -> Verdict {
        let no = row.no;
        // Whoever is gone is seen by the receiver, too.
        let _ = self.runs.send(row);
        // The watch may have given up on the run before in the moment in which it returned.
        let of_this = self.verdicts.iter().find(|(of, _)| *of == no);
        of_this
            .map_or_else(|| Verdict::Deadlock("the thread that played it has ended".to_owned()), |(_, verdict)| verdict)
    }
}

impl Stage {
    /// Why the run cannot be played, if it cannot.
    fn play(&self, row: &RunRow, tell: &mpsc::Sender<(RunNo, Verdict)>) -> Result<Option<String>, StoreError> {
        if is_quarantined(row) {
            return Ok(Some(words_on_run(row)));
        }
        let noted = self.reader.store().began(Doing::Run(row.no));
        let limit = self.options.queues.get(&row.queue).map(|queue| queue.workflow_deadlock_timeout);
        let limit = limit.filter(|limit| !limit.is_zero());
        let replayed = replay(self.reader.store(), &self.options, 0, row, &mut |about, run, turn| {
            let (tell, no) = (tell.clone(), row.no);
            let give_up = move |deadlock: Deadlock| drop(tell.send((no, Verdict::Deadlock(deadlock.reason))));
            let _watched = limit.map(|limit| self.watch.begin(run.watch(), limit, Box::new(give_up)));
            Some(traces::play(about, run, turn))
        });
        if let Some(slot) = noted {
            self.reader.store().ended(slot);
        }
        Ok(match replayed? {
            Replayed::Stuck(reason) => Some(reason),
            Replayed::Ready(_) | Replayed::Lost => None,
        })
    }
}
