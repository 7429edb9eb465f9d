//! Writes: everything that changes a store. Each is applied whole or not at all; many share one transaction.

use dacapo_core::{AttributeValue, Failure, Name, Seq, Target, Timestamp};

use crate::{
    Belongings, Epoch, MessageNo, NewMessage, NewRun, NewTask, NodeNo, RunNo, RunRow, Status, Stuck, TaskNo, TimerKind,
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
    Send {
        /// The run that the message is sent to.
        run: RunNo,
        /// The message.
        message: NewMessage,
        /// The task whose result the message is. The same write ends the task; if the task is gone, the message is
        /// refused.
        ended: Option<TaskNo>,
    },
    /// Settle messages that lead to no turn: a rejected update, a duplicate.
    Settle {
        /// The run that they were sent to.
        run: RunNo,
        /// The fence.
        epoch: Epoch,
        /// The number of the run's next turn, which belongs to the fence: a node whose copy of the run another one has
        /// overtaken cannot tell what came too late.
        turn: u64,
        /// The messages: number, key, and the encoded outcome for callers that wait. Each counts as taken by the next
        /// turn.
        messages: Vec<(MessageNo, Name, Option<Vec<u8>>)>,
        /// Tasks whose results came too late.
        tasks: Vec<TaskNo>,
    },
    /// Remove tasks and timers that are left of a closed run.
    Forget {
        /// The closed run.
        run: RunNo,
        /// The tasks to remove.
        tasks: Vec<TaskNo>,
        /// The timers to remove.
        timers: Vec<(Timestamp, TimerKind)>,
    },
    /// Store the state of a task after an attempt that did not end it.
    Attempt(Box<AttemptWrite>),
    /// Store that a run is stuck, or no longer is.
    SetStuck {
        /// The run.
        run: RunNo,
        /// The fence.
        epoch: Epoch,
        /// Why, and when the engine tries again. None: the run goes on.
        stuck: Option<Stuck>,
    },
    /// Store crash counts of tasks and runs. Those that are deleted are left out.
    CrashCounts(Vec<CrashCount>),
    /// Close a run without a turn of its own: a terminate, or a timeout.
    Close {
        /// The run.
        run: RunNo,
        /// The run's new status.
        status: Status,
        /// When the run closes.
        at: Timestamp,
        /// The failure that callers and the parent get as the result.
        failure: Box<Failure>,
    },
    /// Start a new run from a point of a run's history.
    Reset(Box<ResetWrite>),
    /// Remove a closed run. Its row is removed at once; [`Write::Sweep`] removes its turns and messages step by step.
    Delete {
        /// The run.
        run: RunNo,
    },
    /// Remove those of these runs that closed before a moment; the others stay as they are.
    Expire {
        /// The runs.
        runs: Vec<RunNo>,
        /// The moment.
        before: Timestamp,
    },
    /// Add a closed run that another store kept.
    Import(Box<ImportWrite>),
    /// Remove some of the rows that are left of deleted runs.
    Sweep {
        /// The most rows to remove; fewer where they are large.
        most: usize,
    },
    /// Make a node the owner of a run: from here on the store refuses older epochs.
    Own {
        /// The run.
        run: RunNo,
        /// The epoch that the node read.
        seen: Epoch,
        /// The new owner.
        node: NodeNo,
        /// The new epoch.
        epoch: Epoch,
    },
}

impl Write {
    /// Returns the run that this write belongs to, if the owner of the run alone may make it.
    pub fn owned_run(&self) -> Option<RunNo> {
        match self {
            Self::Turn(turn) => match turn.run {
                TurnOf::Run(run) => Some(run),
                TurnOf::New(_) => None,
            },
            Self::Settle { run, .. } | Self::SetStuck { run, .. } => Some(*run),
            Self::Reset(reset) => Some(reset.from),
            _ => None,
        }
    }
}

/// A turn to be committed: its record and all rows that follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnWrite {
    /// The run that the turn belongs to.
    pub run: TurnOf,
    /// The node that played it.
    pub node: NodeNo,
    /// The fence.
    pub epoch: Epoch,
    /// The turn's number: it is committed only if it is the next.
    pub turn: u64,
    /// When the turn was played.
    pub at: Timestamp,
    /// The run's crash count after this turn: not 0 while its local work, or its next query, may still kill the
    /// process.
    pub crash_count: u32,
    /// The turn's record, encoded.
    pub record: Vec<u8>,
    /// The tasks that the turn makes.
    pub tasks: Vec<NewTask>,
    /// Tasks that the turn ends.
    pub ended_tasks: Vec<TaskNo>,
    /// Activities that the turn ends, whose tasks the node does not know by number.
    pub ended_activities: Vec<Seq>,
    /// The timers that the turn starts.
    pub timers: Vec<(Timestamp, TimerKind)>,
    /// Timers that the turn ends.
    pub ended_timers: Vec<(Timestamp, TimerKind)>,
    /// The messages that the turn takes.
    pub taken: Vec<MessageNo>,
    /// Answers to messages, by key, encoded.
    pub outcomes: Vec<(Name, Vec<u8>)>,
    /// The children that the turn starts.
    pub children: Vec<(Seq, NewRun)>,
    /// Messages that it sends to other runs.
    pub sends: Vec<OutgoingMessage>,
    /// Changes of search attributes; none removes the attribute.
    pub attributes: Vec<(Name, Option<AttributeValue>)>,
    /// The new memo, if it changed.
    pub memo: Option<Vec<u8>>,
    /// The snapshot that the turn published.
    pub published: Option<Vec<u8>>,
    /// How the turn closes the run. None: it does not.
    pub close: Option<Closing>,
}

impl TurnWrite {
    /// Creates a turn that writes only its record, with the default node and epoch.
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

/// The run that a turn belongs to.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnOf {
    /// A run that the store knows.
    Run(RunNo),
    /// A run that starts with this turn.
    New(Box<NewRun>),
}

/// A message to another run, and the operation of the sender that sends it.
#[derive(Clone, Debug, PartialEq)]
pub struct OutgoingMessage {
    /// The sender's operation, which gets the answer whether the message was stored. None: the sender needs no answer.
    pub seq: Option<Seq>,
    /// Whether it is a request to cancel; otherwise it is a signal.
    pub is_cancel: bool,
    /// The run that it is sent to.
    pub to: Target,
    /// The message.
    pub message: NewMessage,
}

/// How a turn closes its run.
#[derive(Clone, Debug, PartialEq)]
pub struct Closing {
    /// The run's new status.
    pub status: Status,
    /// The result or failure, encoded.
    pub result: Vec<u8>,
    /// The message to the parent: an encoded job.
    pub to_parent: Option<Vec<u8>>,
    /// The run that this one continues as.
    pub next: Option<Box<NewRun>>,
    /// Messages for the next run: those that this one was sent and did not take.
    pub carried: Vec<NewMessage>,
}

/// A reset: a new run that starts from a point of another run's history.
#[derive(Clone, Debug, PartialEq)]
pub struct ResetWrite {
    /// The old run. If it is open, it is terminated; its parent gets no message, because the new run takes its place.
    pub from: RunNo,
    /// The number of turns that the old run had when the reset was planned. If it has more by now, the reset is refused
    /// and has to be planned anew. This write moves the old run's unseen messages to the new run.
    pub turns: u64,
    /// The number of turns that are kept, at least 1. The new run's next turn has this number.
    pub keep: u64,
    /// The new run. Its start job is in the kept turns and is not stored as a message. Its parent is that of the run
    /// whose place it takes.
    pub new: NewRun,
    /// When the reset is made.
    pub at: Timestamp,
    /// The tasks that were open at that point: the turn whose command made each, and the task.
    pub tasks: Vec<(u64, NewTask)>,
    /// Messages for the new run.
    pub messages: Vec<NewMessage>,
    /// Messages that the kept turns have taken and that have no outcome yet: the turn of each, and the message. The new run
    /// answers them.
    pub taken: Vec<(u64, NewMessage)>,
    /// Operations of the kept turns whose open children move to the new run. If the old run was open, its other
    /// children are released by their parent-close policies.
    pub children: Vec<Seq>,
    /// The failure that becomes the result of the old run, if it was open.
    pub failure: Box<Failure>,
}

/// A closed run from another store.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportWrite {
    /// The run. Its number, owner and parent belong to the other store and mean nothing here.
    pub run: RunRow,
    /// The run's turns, encoded, from the first on.
    pub turns: Vec<Vec<u8>>,
    /// The run's request, attributes and messages. A request that another run of this store has is left out.
    pub belongings: Belongings,
}

/// The state of a task after an attempt that did not end it.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptWrite {
    /// The task.
    pub task: TaskNo,
    /// The next attempt's number.
    pub attempt: u32,
    /// When the next attempt may start at the earliest.
    pub ready: Timestamp,
    /// The node that runs an attempt now.
    pub node: Option<NodeNo>,
    /// The crash count: how often an attempt was started whose process then died.
    pub crash_count: u32,
    /// When the attempt began that is to be completed externally. None if the worker has to make an attempt.
    pub external: Option<Timestamp>,
    /// How the last attempt failed, encoded.
    pub failure: Option<Vec<u8>>,
    /// The progress that the last attempt reported, encoded.
    pub details: Option<Vec<u8>>,
}

impl AttemptWrite {
    /// Returns whether a later write for the same task, whose values these are, has overtaken this one.
    pub fn is_older_than(&self, attempt: u32, external: Option<Timestamp>) -> bool {
        self.attempt < attempt || self.attempt == attempt && self.external.is_none() && external.is_some()
    }
}

/// A crash count: how often the process died while an attempt of a task or code of a run was running.
#[derive(Clone, Debug, PartialEq)]
pub enum CrashCount {
    /// The process died while an attempt of a task ran.
    Task {
        /// The task.
        task: TaskNo,
        /// The new crash count.
        crash_count: u32,
    },
    /// The process died while code of a run, open or closed, was played: its crash count rises by one. Refused if the count is
    /// not the one that was read, because another node has counted a death as well.
    Died {
        /// The run.
        run: RunNo,
        /// The crash count that was read.
        seen: u32,
        /// The turn that the process played. Once the run has that turn, it has gone on elsewhere, and nothing is counted. None: the
        /// death is counted however far the run is.
        turn: Option<u64>,
        /// Why the run is stuck from now on, if it is open. None: that stays as it is.
        stuck: Option<Stuck>,
    },
    /// The crash count of a run, open or closed, is set.
    Run {
        /// The run.
        run: RunNo,
        /// The new crash count.
        crash_count: u32,
        /// Why the run is stuck, if it is open. None: it goes on.
        stuck: Option<Stuck>,
    },
    /// The crash count of a run becomes 0. If the run is stuck, it stays so.
    Cleared(RunNo),
}

/// The answer to a write that was committed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Written {
    /// The write is committed, and has no other answer.
    Done,
    /// The run was started, now or before.
    Started {
        /// The run.
        run: StartedRun,
        /// The other effects of the start: the run that it replaced, and the messages about that.
        effects: Box<TurnWritten>,
    },
    /// The turn is committed, or the run closed or reset.
    Turn(Box<TurnWritten>),
    /// The message is stored, now or before.
    Sent(SentMessage),
    /// Some rows of deleted runs are removed.
    Swept {
        /// Whether there may be more.
        more: bool,
    },
}

/// A run that was started, now or before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartedRun {
    /// The run's number.
    pub run: RunNo,
    /// The run id.
    pub run_id: Name,
    /// Whether this write started it.
    pub fresh: bool,
    /// The start job's message, if this write stored it.
    pub message: Option<MessageNo>,
    /// The timers that began with the run.
    pub timers: Vec<(Timestamp, TimerKind)>,
    /// The workflow's type.
    pub workflow: Name,
}

/// The effects of a write beside its own rows: all that the engine may have to tell other runs and callers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnWritten {
    /// The run.
    pub run: RunNo,
    /// The numbers of the new tasks, in order.
    pub tasks: Vec<TaskNo>,
    /// Messages that were stored, those to the run itself included.
    pub sent: Vec<SentMessage>,
    /// Runs that were started.
    pub started: Vec<StartedRun>,
    /// Other runs that were closed.
    pub closed: Vec<ClosedRun>,
}

/// A run that was closed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedRun {
    /// The run's number.
    pub run: RunNo,
    /// The run id of the first run of its chain.
    pub first_run_id: Name,
    /// The workflow's type.
    pub workflow: Name,
    /// The status that it closed with.
    pub status: Status,
    /// The run's result, encoded.
    pub result: Vec<u8>,
}

impl ClosedRun {
    /// Returns the run of this row, closed with this status and result.
    pub fn of(row: &RunRow, status: Status, result: Vec<u8>) -> Self {
        let (first_run_id, workflow) = (row.first_run_id.clone(), row.workflow.clone());
        Self { run: row.no, first_run_id, workflow, status, result }
    }
}

/// A message that was stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SentMessage {
    /// The run that it was sent to.
    pub run: RunNo,
    /// The message's number.
    pub no: MessageNo,
    /// The job it brings, encoded.
    pub job: Vec<u8>,
    /// Whether this write stored it; otherwise an earlier write had.
    pub fresh: bool,
    /// How many messages of the run no turn has taken, this one included, where several nodes share the store: the owner of the
    /// run may not have been told of all. 0: they were not counted.
    pub unseen: usize,
}
