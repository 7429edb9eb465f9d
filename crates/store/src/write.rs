//! Writes: everything that ever changes a store. Each is whole or nothing; many share one transaction.

use dacapo_core::{Failure, Name, Seq, Target, Timestamp};

use crate::{
    Belongings, Conflict, Epoch, MessageNo, NewMessage, NewRun, NewTask, NodeNo, RunNo, RunRow, Status, Stuck, TaskNo,
    TimerKind,
};

/// One change, atomic by itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Write {
    /// Start a run; its first turn comes later.
    Start(Box<NewRun>),
    /// Commit a turn.
    Turn(Box<TurnWrite>),
    /// Send a message to an open run.
    Post {
        /// Whom.
        run: RunNo,
        /// What.
        message: NewMessage,
        /// The task whose result it is, and which is over with it. If that task is gone, the message is refused.
        ended: Option<TaskNo>,
    },
    /// Settle messages that lead to no turn: a rejected update, a duplicate.
    Settle {
        /// Whose.
        run: RunNo,
        /// The fence.
        epoch: Epoch,
        /// Which: its number and key, and what those who wait for it are told, encoded. It counts as taken by the next
        /// turn.
        messages: Vec<(MessageNo, Name, Option<Vec<u8>>)>,
        /// Tasks whose results came too late.
        tasks: Vec<TaskNo>,
    },
    /// Remove what is left of a closed run: tasks and timers that nobody waits for.
    Forget {
        /// Whose.
        run: RunNo,
        /// Tasks that are over.
        tasks: Vec<TaskNo>,
        /// Timers that are over.
        timers: Vec<(Timestamp, TimerKind)>,
    },
    /// Note what became of an attempt that did not end its task.
    Attempt(Box<AttemptWrite>),
    /// Note that a run cannot go on.
    SetStuck {
        /// Which.
        run: RunNo,
        /// The fence.
        epoch: Epoch,
        /// Why, and when it is tried again. None: it goes on.
        stuck: Option<Stuck>,
    },
    /// Note what is held against tasks and runs. Those that are gone are left out.
    CrashCounts(Vec<CrashCount>),
    /// End a run from external.
    Close {
        /// Which.
        run: RunNo,
        /// As what.
        status: Status,
        /// When.
        at: Timestamp,
        /// What those who wait for it are told.
        failure: Box<Failure>,
    },
    /// Begin a run again from a point of its history.
    Reset(Box<ResetWrite>),
    /// Remove a closed run. It is gone at once; its turns and messages are removed step by step by [`Write::Sweep`].
    Delete {
        /// Which.
        run: RunNo,
    },
    /// Remove those of these runs that closed before a moment; others are left as they are.
    Expire {
        /// Which.
        runs: Vec<RunNo>,
        /// The moment.
        before: Timestamp,
    },
    /// Add a closed run that another store kept.
    Import(Box<ImportWrite>),
    /// Remove some of what is left of runs that were deleted.
    Sweep {
        /// How many rows at most; fewer where they are large.
        most: usize,
    },
    /// Take a run into memory: from here on older epochs are refused.
    Own {
        /// Which.
        run: RunNo,
        /// The epoch it was seen with.
        seen: Epoch,
        /// Who.
        node: NodeNo,
        /// With which epoch.
        epoch: Epoch,
    },
}

/// A turn to be committed: its record and all that follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnWrite {
    /// Whose turn.
    pub run: TurnOf,
    /// Who played it.
    pub node: NodeNo,
    /// The fence.
    pub epoch: Epoch,
    /// Its number: committed only if it is the next.
    pub turn: u64,
    /// When it was played.
    pub at: Timestamp,
    /// What is still held against the run: work of its own runs on, whose process died before.
    pub crash_count: u32,
    /// Its record, encoded.
    pub record: Vec<u8>,
    /// Tasks it makes.
    pub tasks: Vec<NewTask>,
    /// Tasks that are over.
    pub ended_tasks: Vec<TaskNo>,
    /// Activities that are over, whose tasks the node does not know by number.
    pub ended_activities: Vec<Seq>,
    /// Timers it starts.
    pub timers: Vec<(Timestamp, TimerKind)>,
    /// Timers that are over.
    pub ended_timers: Vec<(Timestamp, TimerKind)>,
    /// The messages that the turn takes.
    pub taken: Vec<MessageNo>,
    /// Answers to messages, by key, encoded.
    pub outcomes: Vec<(Name, Vec<u8>)>,
    /// Children it starts.
    pub children: Vec<(Seq, NewRun)>,
    /// Messages that it sends to other runs.
    pub sends: Vec<Send>,
    /// Changes of search attributes; none removes one.
    pub attributes: Vec<(Name, Option<Vec<u8>>)>,
    /// The memo as it now stands, if it changed.
    pub memo: Option<Vec<u8>>,
    /// The snapshot it published.
    pub published: Option<Vec<u8>>,
    /// How it ends the run, if it does.
    pub close: Option<Closing>,
}

impl TurnWrite {
    /// A turn from which nothing follows but that it was played, by nobody in particular.
    pub fn new(run: TurnOf, turn: u64, at: Timestamp, record: Vec<u8>) -> Self {
        Self {
            run,
            node: NodeNo::default(),
            epoch: Epoch::default(),
            turn,
            at,
            crash_count: 0,
            record,
            tasks: Vec::new(),
            ended_tasks: Vec::new(),
            ended_activities: Vec::new(),
            timers: Vec::new(),
            ended_timers: Vec::new(),
            taken: Vec::new(),
            outcomes: Vec::new(),
            children: Vec::new(),
            sends: Vec::new(),
            attributes: Vec::new(),
            memo: None,
            published: None,
            close: None,
        }
    }
}

/// Whose turn it is.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnOf {
    /// A run that the store knows.
    Run(RunNo),
    /// A run that starts with this, its first turn.
    New(Box<NewRun>),
}

/// A message to another run, and the operation of the sender that it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Send {
    /// The sender's operation, which is told whether it arrived; none if nobody wants to know.
    pub seq: Option<Seq>,
    /// Whether it is a signal or a request to cancel.
    pub is_cancel: bool,
    /// Whom.
    pub to: Target,
    /// What.
    pub message: NewMessage,
}

/// How a turn ends its run.
#[derive(Clone, Debug, PartialEq)]
pub struct Closing {
    /// As what.
    pub status: Status,
    /// The result or failure, encoded.
    pub result: Vec<u8>,
    /// What a parent is told: an encoded job.
    pub to_parent: Option<Vec<u8>>,
    /// The run that it goes on as.
    pub next: Option<Box<NewRun>>,
    /// Messages that the next run finds: those that this one was sent and did not take.
    pub carried: Vec<NewMessage>,
}

/// A run that begins again from a point of another's history.
#[derive(Clone, Debug, PartialEq)]
pub struct ResetWrite {
    /// The other. If it is open, it ends as terminated; its parent is not told, because the new run takes its place.
    pub from: RunNo,
    /// How many turns the old run had when this was planned: one that has moved on since is planned anew. Mail that it has
    /// not taken goes to the new run with this write.
    pub turns: u64,
    /// How many turns are kept: the new run's next turn has this number. At least 1.
    pub keep: u64,
    /// The new run. Its start job is in the kept turns and is not a message; its parent is that of the run it takes
    /// the place of.
    pub new: NewRun,
    /// When.
    pub at: Timestamp,
    /// What was pending at that point: the turn whose command it is, and the task.
    pub tasks: Vec<(u64, NewTask)>,
    /// Messages that wait for the new run.
    pub messages: Vec<NewMessage>,
    /// Operations of the kept turns whose open children go on under the new run. Other children of a run that ends by
    /// this are released as agreed.
    pub children: Vec<Seq>,
    /// What becomes the result of the other run, if it was open.
    pub failure: Box<Failure>,
}

/// A closed run from another store.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportWrite {
    /// The run. Its number, its owner and its parent are of the other store, and mean nothing here.
    pub run: RunRow,
    /// Its turns, encoded, from the first on.
    pub turns: Vec<Vec<u8>>,
    /// What it had beside them. A request that another run answers here is left out.
    pub belongings: Belongings,
}

/// What became of an attempt that did not end its task.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptWrite {
    /// The task.
    pub task: TaskNo,
    /// The attempt that comes next.
    pub attempt: u32,
    /// Not before this.
    pub ready: Timestamp,
    /// Who tries it now.
    pub holder: Option<NodeNo>,
    /// How often an attempt was started and never heard of again.
    pub crash_count: u32,
    /// When the attempt began that somebody external completes; none if an attempt is to be made.
    pub external: Option<Timestamp>,
    /// How it failed, encoded.
    pub failure: Option<Vec<u8>>,
    /// What it reported of its progress, encoded.
    pub details: Option<Vec<u8>>,
}

impl AttemptWrite {
    /// Whether it was overtaken on its way by a later one of the same task, after which the row says this.
    pub fn is_older_than(&self, attempt: u32, external: Option<Timestamp>) -> bool {
        self.attempt < attempt || self.attempt == attempt && self.external.is_none() && external.is_some()
    }
}

/// How often the process died while a task was tried, or code of a run was played; 0 if nothing is held against it any more.
#[derive(Clone, Debug, PartialEq)]
pub enum CrashCount {
    /// While a task was tried.
    Task {
        /// Which.
        task: TaskNo,
        /// How often.
        crash_count: u32,
    },
    /// While code of a run, open or closed, was played.
    Run {
        /// Which.
        run: RunNo,
        /// How often.
        crash_count: u32,
        /// Why it does not go on, if it is open and does not. None: it goes on.
        stuck: Option<Stuck>,
    },
    /// Nothing is held against a run any more. Why it does not go on, if it does not, is another matter, and stays.
    Cleared(RunNo),
}

/// What a write came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Written {
    /// It is done, and there is nothing to say of it.
    Done,
    /// The run was started, or had been.
    Started {
        /// The run.
        run: StartedRun,
        /// What else that brought about: whom it replaced, and who was told.
        effects: Box<TurnWritten>,
    },
    /// The turn is committed, or the run closed or begun again.
    Turn(Box<TurnWritten>),
    /// The message is stored, or was before.
    Posted(Posted),
    /// Some of what was left is gone.
    Swept {
        /// Whether there may be more.
        more: bool,
    },
}

/// A run that was started, or had been.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartedRun {
    /// Its number.
    pub run: RunNo,
    /// Its run id.
    pub run_id: Name,
    /// Whether this write started it.
    pub fresh: bool,
    /// Its start job, which waits as a message, if this write left it there.
    pub message: Option<MessageNo>,
    /// Timers that began with it.
    pub timers: Vec<(Timestamp, TimerKind)>,
}

/// What a write brought about beside its own rows: all that others may have to be told of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnWritten {
    /// The run.
    pub run: RunNo,
    /// The numbers of its new tasks, in order.
    pub tasks: Vec<TaskNo>,
    /// Messages that were stored, its own included.
    pub posted: Vec<Posted>,
    /// Runs that were started.
    pub started: Vec<StartedRun>,
    /// Other runs that were closed.
    pub closed: Vec<ClosedRun>,
}

/// A run that was closed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedRun {
    /// Its number.
    pub run: RunNo,
    /// The first run of its chain.
    pub first_run_id: Name,
    /// How it ended.
    pub status: Status,
    /// Its result, encoded.
    pub result: Vec<u8>,
}

/// A message that was stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Posted {
    /// Whose.
    pub run: RunNo,
    /// Its number.
    pub no: MessageNo,
    /// The job it brings, encoded.
    pub job: Vec<u8>,
    /// Whether this write put it there; otherwise it had been.
    pub fresh: bool,
}

/// Why a write was refused. It changed nothing, and the others of its group are not concerned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Somebody else has taken the run, or committed this turn.
    #[error("the run is at turn {turns} under {epoch}: this write comes from a node that has lost it")]
    Fenced {
        /// The number of the run's next turn.
        turns: u64,
        /// The fence.
        epoch: Epoch,
    },
    /// The run has messages that the turn, which would close it, has not seen.
    #[error("the run has messages that this last turn has not seen: play it again with them")]
    UnseenMessages,
    /// The run has moved on since the write was planned.
    #[error("the run has moved on meanwhile: plan it again")]
    MovedOn,
    /// The turn takes a message that another turn has taken.
    #[error("the turn takes a message that was taken before: play it again without it")]
    MessageTaken,
    /// The run is closed.
    #[error("the run is {0}: it takes nothing more")]
    Closed(Status),
    /// There is no such run.
    #[error("there is no such run")]
    NoSuchRun,
    /// The run is open, and this can only be done to a closed one.
    #[error("the run is open: wait for its end, cancel it or terminate it first")]
    Open,
    /// There is a run of this id.
    #[error("run {0} is there already")]
    Exists(Name),
    /// The run has no such turn to begin again from.
    #[error("the run cannot begin again at turn {turn}: {how}", how = choice(*.turns))]
    NoSuchTurn {
        /// The turn that was to be the next.
        turn: u64,
        /// How many turns are recorded.
        turns: u64,
    },
    /// There is no such task any more.
    #[error("there is no such task any more: it is over, or its run is")]
    NoSuchTask,
    /// The workflow id is in use.
    #[error("workflow id {workflow_id:?} is in use by run {run_id}: {how}", how = advice(.conflict))]
    InUse {
        /// The id.
        workflow_id: Name,
        /// The run that has it.
        run_id: Name,
        /// What the caller asked to be done then.
        conflict: Conflict,
    },
    /// The workflow id was used and may not be again.
    #[error(
        "workflow id {workflow_id:?} was used by run {run_id}, which is {status}, and its policy does not allow it again"
    )]
    Used {
        /// The id.
        workflow_id: Name,
        /// The run that had it last.
        run_id: Name,
        /// How that run ended.
        status: Status,
    },
    /// The same request was made before, with other content.
    #[error("request {0:?} was made before, for another workflow or with another input: use a new request id")]
    OtherRequest(Name),
}

fn advice(conflict: &Conflict) -> &'static str {
    match conflict {
        Conflict::Fail => {
            "wait for it to close, or say what is meant: the run that is open (`id_conflict(Conflict::UseExisting)`), or the same \
             request as before (`request(key)`)"
        }
        Conflict::UseExisting | Conflict::TerminateExisting => "another start was faster",
    }
}

fn choice(turns: u64) -> String {
    match turns {
        0 => "it has played none yet, so start another run instead".to_owned(),
        turns => format!("it has played {turns}, so choose a number from 1 to {turns}"),
    }
}
