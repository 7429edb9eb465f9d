//! Loading: a run that is not in memory is played again from the beginning, against what was recorded.

use std::ops::ControlFlow;
use std::sync::Arc;

use dacapo_core::{Activation, Completion, Job, Run, Timestamp, TurnRecord};
use dacapo_store::{Doing, MailNo, RunNo, RunRow, Store, StoreError};

use crate::Options;
use crate::book::Book;
use crate::inner::Inner;
use crate::live::{About, Body, Live};
use crate::quarantine::is_quarantined;

/// How many records are read at a time: others may read in between.
const CHUNK: usize = 256;

pub(crate) enum Loaded {
    /// It can go on.
    Ready(Box<Body>),
    /// It is closed, and can only be asked.
    Closed(Box<RunRow>),
    /// Its time has not come.
    NotYet(Timestamp),
    /// Others serve its queue.
    Elsewhere,
    /// There is no such run.
    Missing,
    /// It cannot be played: why, and what to do.
    Stuck(String),
    /// Its process died too often while it was played.
    Quarantined(Box<RunRow>),
    /// Its process died while it was played, and others are tried before it. It is at rest.
    Waits,
    /// It was taken from this player, who took too long.
    Lost,
}

/// A run that was played again.
pub(crate) enum Replayed {
    Ready(Box<Body>),
    Stuck(String),
    Lost,
}

impl Inner {
    /// Loads a run and its mail.
    pub(crate) fn load(self: &Arc<Self>, live: &Arc<Live>, player: u64) -> Result<Loaded, StoreError> {
        let Some(row) = self.store.run(live.no)? else { return Ok(Loaded::Missing) };
        if !row.status.is_open() {
            return Ok(Loaded::Closed(Box::new(row)));
        }
        if !self.serves(&row.queue) {
            return Ok(Loaded::Elsewhere);
        }
        if row.turns == 0 && row.started > self.host.now() {
            return Ok(Loaded::NotYet(row.started));
        }
        if is_quarantined(&row) {
            return Ok(Loaded::Quarantined(Box::new(row)));
        }
        if !self.admit(live, row.strikes) {
            return Ok(Loaded::Waits);
        }
        let body = match self.replay(live, player, &row)? {
            Replayed::Ready(body) => body,
            Replayed::Stuck(reason) => return Ok(Loaded::Stuck(reason)),
            Replayed::Lost => return Ok(Loaded::Lost),
        };
        // Under the lock, so that mail which comes meanwhile is either read here or brought later, and never both.
        let mut state = live.lock();
        let mail = match self.unseen(live.no)? {
            Ok(mail) => mail,
            Err(reason) => return Ok(Loaded::Stuck(reason)),
        };
        state.reread(mail);
        Ok(Loaded::Ready(body))
    }

    fn unseen(&self, run: RunNo) -> Result<Result<Vec<(MailNo, Job)>, String>, StoreError> {
        let mut mail = Vec::new();
        for row in self.store.unseen(run)? {
            match minicbor::decode(&row.job) {
                Ok(job) => mail.push((row.no, job)),
                Err(error) => return Ok(Err(format!("its mail {:?} cannot be read: {error}", row.key))),
            }
        }
        Ok(Ok(mail))
    }

    /// Plays all recorded turns of a run again.
    pub(crate) fn replay(
        self: &Arc<Self>,
        live: &Arc<Live>,
        player: u64,
        row: &RunRow,
    ) -> Result<Replayed, StoreError> {
        let meters = self.worker(&row.queue).meters();
        if row.turns > 0 {
            meters.replays.increment(1);
        }
        // One note and one watch for all of them: each turn has its own time.
        let _noted = if row.turns > 0 { self.note(Doing::Run(live.no)) } else { None };
        let mut watching = None;
        replay(&*self.store, &self.options, player, row, &mut |about, run, turn| {
            meters.replayed_turns.increment(1);
            watching.get_or_insert_with(|| self.watch_player(live, player, about, run));
            let played = self.play_one(about, run, turn);
            live.has_player(player).then_some(played)
        })
    }

    pub(crate) fn records(&self, run: RunNo, from: u64, most: usize) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        read_records(&*self.store, run, from, most)
    }
}

/// Plays a recorded turn of a run. None if somebody else has it by now.
pub(crate) type PlayAgain<'a> = &'a mut dyn FnMut(&Arc<About>, &mut Run, Activation) -> Option<Completion>;

/// Plays all recorded turns of a run again, with the code that these options bring.
pub(crate) fn replay(
    store: &dyn Store,
    options: &Options,
    player: u64,
    row: &RunRow,
    play: PlayAgain<'_>,
) -> Result<Replayed, StoreError> {
    let Some(workflow) = options.registry.find_workflow(&row.workflow) else {
        return Ok(Replayed::Stuck(format!(
            "no workflow {:?} is registered here; registered are: {}. Serve it in this program, or terminate the run",
            row.workflow,
            options.known_workflows()
        )));
    };
    let about = match About::of(row) {
        Ok(about) => Arc::new(about),
        Err(reason) => return Ok(Replayed::Stuck(reason)),
    };
    let mut run = match Run::new(workflow.clone(), options.for_run(&about.pins)) {
        Ok(run) => run,
        Err(error) => return Ok(Replayed::Stuck(error.to_string())),
    };
    let mut book = Book::default();
    loop {
        let records = read_records(store, row.no, book.next_turn, CHUNK)?;
        let last = records.len() < CHUNK;
        for (number, bytes) in records {
            let record = match TurnRecord::from_bytes(&bytes) {
                Ok(record) if record.number == number => record,
                Ok(record) => {
                    return Ok(Replayed::Stuck(format!("turn {number} is recorded as turn {}", record.number)));
                }
                Err(error) => return Ok(Replayed::Stuck(format!("turn {number}: {error}"))),
            };
            book.enter(&record, bytes.len());
            match play(&about, &mut run, Activation::Turn(record.into_turn())) {
                Some(Completion::Turn(_)) => {}
                None => return Ok(Replayed::Lost),
                Some(Completion::Failed(error)) => return Ok(Replayed::Stuck(error.to_string())),
                Some(other) => unreachable!("a turn was answered with {other:?}"),
            }
        }
        if last {
            return Ok(Replayed::Ready(Box::new(Body { about, run, book, held: Vec::new(), player })));
        }
    }
}

/// Reads at most so many records of a run.
pub(crate) fn read_records(
    store: &dyn Store,
    run: RunNo,
    from: u64,
    most: usize,
) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
    let mut records = Vec::new();
    store.turns(run, from, &mut |number, bytes| {
        records.push((number, bytes.to_vec()));
        if records.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(records)
}
