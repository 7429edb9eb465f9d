//! Loading: a run that is not in memory is played again from the beginning, against what was recorded.

use std::ops::ControlFlow;
use std::sync::Arc;

use dacapo_core::{Activation, Completion, Job, Run, Timestamp};
use dacapo_store::{Doing, MailNo, RunNo, RunRow, Store, StoreError};

use crate::Options;
use crate::crash_guard::quarantine::is_quarantined;
use crate::inner::Inner;
use crate::read::records::{Unreadable, each_record};
use crate::run::cached_run::{About, Body, Live};
use crate::run::open_operations::Book;

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
    let shown = each_record(store, row.no, |record, bytes| {
        book.enter(&record, bytes);
        ControlFlow::Break(match play(&about, &mut run, Activation::Turn(record.into_turn())) {
            Some(Completion::Turn(_)) => return ControlFlow::Continue(()),
            None => Replayed::Lost,
            Some(Completion::Failed(error)) => Replayed::Stuck(error.to_string()),
            Some(other) => unreachable!("a turn was answered with {other:?}"),
        })
    });
    match shown {
        Ok(None) if book.next_turn < row.turns => Ok(Replayed::Stuck(too_few(store, row, book.next_turn)?)),
        Ok(None) => Ok(Replayed::Ready(Box::new(Body { about, run, book, held: Vec::new(), player }))),
        Ok(Some(stopped)) => Ok(stopped),
        Err(Unreadable::Record(reason)) => Ok(Replayed::Stuck(reason)),
        Err(Unreadable::Store(error)) => Err(error),
    }
}

/// Why a run has fewer turns than it says.
fn too_few(store: &dyn Store, row: &RunRow, found: u64) -> Result<String, StoreError> {
    Ok(match store.run(row.no)? {
        None => "it was deleted".to_owned(),
        Some(_) => format!(
            "it has {} turns, and only {found} of them are there: the store is damaged. Restore it from a backup",
            row.turns
        ),
    })
}
