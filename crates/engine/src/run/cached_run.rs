//! A run as the engine holds it in memory: what came for it, and the run itself while nobody plays it.
//!
//! ```text
//!          something comes            a thread is free
//!   Idle ──────────────────▶ Queued ──────────────────▶ Busy ──▶ Idle | Queued   its turn is committed
//!                              ▲                          │
//!                              │ it is tried again        ▼
//!                              └────────────────────── Parked                     its turn cannot be played
//! ```
//!
//! The run and its book ([`Body`]) are outside the lock while a turn is played and committed, so that whoever brings
//! something never waits for user code or for the disk.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use dacapo_core::{Inspection, Job, Name, Outcome, Payload, Pins, Query, Resolution, Run, Seq, Timestamp};
use dacapo_store::{Epoch, MailNo, Parent, RunNo, RunRow, TaskNo};
use dacapo_worker::{Level, Worker};
use tokio::sync::oneshot;

use crate::EngineError;
use crate::api::reset::Reset;
use crate::run::open_operations::Book;
use crate::turn::plan::Plan;
use crate::turn::player::Play;

/// What names a run and never changes.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) run_id: Name,
    pub(crate) workflow_id: Name,
    pub(crate) workflow: Name,
    pub(crate) queue: Name,
    pub(crate) first_run_id: Name,
    pub(crate) parent: Option<Parent>,
    pub(crate) pins: Pins,
    pub(crate) epoch: Epoch,
}

impl About {
    pub(crate) fn of(row: &RunRow) -> Result<Self, String> {
        let pins = minicbor::decode(&row.pins).map_err(|error| format!("its pins cannot be read: {error}"))?;
        Ok(Self {
            run_id: row.run_id.clone(),
            workflow_id: row.workflow_id.clone(),
            workflow: row.workflow.clone(),
            queue: row.queue.clone(),
            first_run_id: row.first_run_id.clone(),
            parent: row.parent.clone(),
            pins,
            epoch: row.epoch,
        })
    }
}

/// A run that can be played.
pub(crate) struct Body {
    pub(crate) about: Arc<About>,
    pub(crate) run: Run,
    pub(crate) book: Book,
    /// Turns that were played and not yet submitted: they hold nothing but local work.
    pub(crate) held: Vec<Plan>,
    /// Which player this is: one that was given up on is no longer the run's.
    pub(crate) player: u64,
}

/// Something that came for a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arrival {
    /// Mail, which the store keeps.
    Mail { no: MailNo, job: Job },
    /// The outcome of an activity, which the store does not know yet.
    Result { task: TaskNo, seq: Seq, outcome: Outcome },
    /// A timer, which the store keeps until a turn takes it.
    Timer { seq: Seq, due: Timestamp },
    /// The outcome of local work, which nobody keeps.
    Local { seq: Seq, resolution: Resolution },
}

impl Arrival {
    /// The place of its job in the canonical order.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Mail { job, .. } => match job {
                Job::Start(_) => 0,
                Job::Patch { .. } => 1,
                Job::Seed { .. } => 2,
                Job::Signal(_) | Job::Update(_) => 3,
                _ => 4,
            },
            Self::Result { .. } | Self::Timer { .. } => 4,
            Self::Local { .. } => 5,
        }
    }

    pub(crate) fn mail(&self) -> Option<MailNo> {
        match self {
            Self::Mail { no, .. } => Some(*no),
            _ => None,
        }
    }

    pub(crate) fn job(&self) -> Job {
        match self {
            Self::Mail { job, .. } => job.clone(),
            Self::Result { seq, outcome, .. } => {
                Job::Resolve { seq: *seq, resolution: Resolution::Activity(outcome.clone()) }
            }
            Self::Timer { seq, .. } => Job::Resolve { seq: *seq, resolution: Resolution::Timer },
            Self::Local { seq, resolution } => Job::Resolve { seq: *seq, resolution: resolution.clone() },
        }
    }
}

/// Something to be answered from the state of a run.
pub(crate) enum Ask {
    Query(Query, oneshot::Sender<Result<Payload, EngineError>>),
    Inspect(oneshot::Sender<Result<Inspection, EngineError>>),
    /// The seq of the open promise of this name or id.
    Promise(Name, oneshot::Sender<Result<Seq, EngineError>>),
}

impl Ask {
    pub(crate) fn refuse(self, error: EngineError) {
        match self {
            Self::Query(_, answer) => drop(answer.send(Err(error))),
            Self::Inspect(answer) => drop(answer.send(Err(error))),
            Self::Promise(_, answer) => drop(answer.send(Err(error))),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Idle,
    Queued,
    Busy,
    Parked,
}

#[derive(Default)]
pub(crate) struct LiveState {
    pub(crate) stage: Stage,
    pub(crate) inbox: VecDeque<Arrival>,
    /// Questions, each with how many arrivals come before it.
    pub(crate) asks: VecDeque<(u64, Ask)>,
    /// How many arrivals ever came, and how many of them were taken.
    pub(crate) came: u64,
    pub(crate) taken: u64,
    /// Resets that somebody asked for.
    pub(crate) resets: VecDeque<Reset>,
    /// Local work that is to be tried again, and which attempt that is.
    pub(crate) redo: Vec<(Seq, u32)>,
    /// Whether turns that are held back are to be committed now.
    pub(crate) flush: bool,
    /// Whether the next turn takes all that came, because one that took less could not close the run.
    pub(crate) takes_all: bool,
    /// What was taken since the last commit.
    pub(crate) uncommitted: Vec<Arrival>,
    /// Counts the players that were given up on.
    pub(crate) player: u64,
    /// The player that was given up on last, for as long as its code has not returned.
    pub(crate) lost_player: Weak<Mutex<Play>>,
    /// How often in a row the run could not be played.
    pub(crate) strikes: u32,
    /// Counts it among those, until it goes on.
    pub(crate) stuck: Option<Level>,
    /// What is held against it, while it is on trial.
    pub(crate) on_trial: Option<u32>,
    /// Until when it is not tried again.
    pub(crate) parked_until: Timestamp,
    /// Mail that was read when the run was loaded: if its sender's call brings it as well, it is the same mail.
    pub(crate) read: BTreeSet<MailNo>,
    /// None while it is played, and when it is not in memory.
    pub(crate) body: Option<Box<Body>>,
    /// Set when the entry has left the map: whoever still holds it must look the run up again.
    pub(crate) gone: bool,
}

impl LiveState {
    /// It goes on.
    pub(crate) fn unstick(&mut self) {
        self.strikes = 0;
        self.stuck = None;
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.inbox.is_empty()
            || !self.asks.is_empty()
            || !self.redo.is_empty()
            || !self.resets.is_empty()
            || self.flush
    }

    /// Whether the result of this local work has come.
    pub(crate) fn has_local(&self, seq: Seq) -> bool {
        self.inbox.iter().any(|arrival| matches!(arrival, Arrival::Local { seq: of, .. } if *of == seq))
    }

    pub(crate) fn is_asked(&self) -> bool {
        !self.asks.is_empty() || !self.resets.is_empty()
    }

    pub(crate) fn push(&mut self, arrival: Arrival) {
        self.came += 1;
        self.inbox.push_back(arrival);
    }

    pub(crate) fn ask(&mut self, ask: Ask) {
        self.asks.push_back((self.came, ask));
    }

    /// Replaces the mail in the inbox by what the store says is there. What else came stays behind it, in order.
    pub(crate) fn reread(&mut self, mail: Vec<(MailNo, Job)>) {
        let brought: BTreeSet<MailNo> = self.inbox.iter().filter_map(Arrival::mail).collect();
        self.inbox.retain(|arrival| arrival.mail().is_none());
        self.read.extend(mail.iter().map(|(no, _)| *no).filter(|no| !brought.contains(no)));
        for (no, job) in mail.into_iter().rev() {
            self.inbox.push_front(Arrival::Mail { no, job });
        }
        // Questions wait for all that is there now.
        self.came = self.taken + self.inbox.len() as u64;
        for (after, _) in &mut self.asks {
            *after = (*after).min(self.came);
        }
    }

    /// Puts back what was taken by a turn that came to nothing.
    pub(crate) fn put_back(&mut self, arrivals: Vec<Arrival>) {
        self.taken -= arrivals.len() as u64;
        for arrival in arrivals.into_iter().rev() {
            self.inbox.push_front(arrival);
        }
    }

    /// Puts back all that was taken since the last commit.
    pub(crate) fn put_back_all(&mut self) {
        let uncommitted = std::mem::take(&mut self.uncommitted);
        self.put_back(uncommitted);
    }

    /// Takes at most so many arrivals.
    pub(crate) fn take(&mut self, most: usize) -> Vec<Arrival> {
        let most = if std::mem::take(&mut self.takes_all) { usize::MAX } else { most.max(1) };
        let count = self.inbox.len().min(most);
        self.taken += count as u64;
        self.inbox.drain(..count).collect()
    }

    /// Gives all of it away: the run is not to be played now.
    pub(crate) fn turn_away(&mut self) -> (Vec<Arrival>, Vec<Ask>) {
        let arrivals = std::mem::take(&mut self.inbox).into();
        self.came = self.taken;
        (arrivals, std::mem::take(&mut self.asks).into_iter().map(|(_, ask)| ask).collect())
    }

    /// Takes the questions whose time has come.
    pub(crate) fn take_asks(&mut self) -> Vec<Ask> {
        let due = self.asks.iter().take_while(|(after, _)| *after <= self.taken).count();
        self.asks.drain(..due).map(|(_, ask)| ask).collect()
    }
}

/// A run in memory.
pub(crate) struct Live {
    pub(crate) no: RunNo,
    /// Who plays it; not known before its queue is.
    worker: OnceLock<Arc<Worker>>,
    state: Mutex<LiveState>,
}

impl Live {
    pub(crate) fn new(no: RunNo, state: LiveState) -> Arc<Self> {
        Arc::new(Self { no, worker: OnceLock::new(), state: Mutex::new(state) })
    }

    pub(crate) fn worker(&self) -> Option<&Arc<Worker>> {
        self.worker.get()
    }

    /// A run keeps its queue for life.
    pub(crate) fn is_played_by(&self, worker: &Arc<Worker>) {
        let _ = self.worker.set(worker.clone());
    }

    /// Whether the run was not taken from this player.
    pub(crate) fn has_player(&self, player: u64) -> bool {
        self.lock().player == player
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
