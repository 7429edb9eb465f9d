//! The desk: every activity that is pending, and which of them is tried now.
//!
//! ```text
//!            a place is free            it failed, and is worth another try
//!   Ready ──────────────────▶ Running ──────────────────────────────────────▶ Waiting ──▶ Ready
//!     │                          │
//!     │ nobody serves its type   ├──▶ gone: its outcome is on its way to the run
//!     ▼                          │
//!   Unserved                     └──▶ Outside ──▶ gone, or Waiting
//!             somebody else completes it          if they say so, or its time is over
//! ```
//!
//! A task whose process died too often while it was tried is `Quarantined` from the beginning; when it is released, it is
//! `Ready`. Tasks are rows of the store; the desk holds all of those that are pending, so that nothing has to be claimed or polled.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use dacapo_core::{Failure, Name, OperationId, Payload, ScheduleActivity, Seq, Timestamp};
use dacapo_store::{RunNo, TaskNo};
use dacapo_worker::{Grip, Level, meter};

use crate::activity::input_cache::Inputs;
use crate::run::cached_run::About;
use crate::timer::wheel::AlarmNo;

/// An activity that is pending.
#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) no: TaskNo,
    pub(crate) about: Arc<About>,
    pub(crate) command: Arc<ScheduleActivity>,
    /// Whether the command still has its input; otherwise it is where it came from.
    pub(crate) has_input: bool,
    /// The turn that scheduled it, and the place in it.
    pub(crate) origin: (u64, u32),
    pub(crate) scheduled: Timestamp,
    pub(crate) priority: i32,
    /// The attempt that runs, or that comes next, from 1.
    pub(crate) attempt: u32,
    pub(crate) failure: Option<Failure>,
    pub(crate) details: Option<Payload>,
    pub(crate) state: TaskState,
    /// Whether it was asked to stop and its outcome is waited for.
    pub(crate) cancelled: Option<String>,
    /// How often its process died while it was tried, since an attempt last ended.
    pub(crate) strikes: u32,
}

#[derive(Clone)]
pub(crate) enum TaskState {
    /// Until it may be tried again.
    Waiting {
        until: Timestamp,
    },
    Ready,
    Running(Attempting),
    /// Its code has ended, and somebody outside says how the attempt ends. It takes no place.
    Outside(Attempting),
    /// Its queue is served here, its type is not.
    Unserved,
    /// Its process died too often while it was tried: it waits until somebody releases it.
    Quarantined,
}

/// An attempt that runs, here or outside.
#[derive(Clone)]
pub(crate) struct Attempting {
    pub(crate) grip: Option<Grip>,
    pub(crate) started: Timestamp,
    pub(crate) last_heartbeat: Timestamp,
    /// When reported progress was last stored; none before the first report.
    pub(crate) stored: Option<Timestamp>,
    /// Whether something was reported since, which is stored when the pause between two reports is over.
    pub(crate) unstored: bool,
    /// Its timeouts.
    pub(crate) alarms: Vec<AlarmNo>,
    /// Whether its code has left it to somebody outside, and that is about to be noted.
    pub(crate) leaves: bool,
}

impl Attempting {
    /// An attempt that began then.
    pub(crate) fn since(started: Timestamp) -> Self {
        Self {
            grip: None,
            started,
            last_heartbeat: started,
            stored: None,
            unstored: false,
            alarms: Vec::new(),
            leaves: false,
        }
    }
}

impl Task {
    /// The attempt that runs, here or outside.
    pub(crate) fn attempting(&self) -> Option<&Attempting> {
        match &self.state {
            TaskState::Running(attempting) | TaskState::Outside(attempting) => Some(attempting),
            TaskState::Waiting { .. } | TaskState::Ready | TaskState::Unserved | TaskState::Quarantined => None,
        }
    }

    /// The same attempt, about which something else is known now.
    pub(crate) fn set_attempting(&mut self, now: Attempting) {
        if let TaskState::Running(attempting) | TaskState::Outside(attempting) = &mut self.state {
            *attempting = now;
        }
    }

    /// When the attempt began that somebody outside completes.
    pub(crate) fn outside(&self) -> Option<Timestamp> {
        let is_outside = |attempting: &&Attempting| attempting.leaves || matches!(self.state, TaskState::Outside(_));
        self.attempting().filter(is_outside).map(|attempting| attempting.started)
    }
}

type Key = (RunNo, Seq);

#[derive(Default)]
pub(crate) struct Desk {
    tasks: HashMap<Key, Task>,
    /// Tasks of each run.
    of_run: HashMap<RunNo, BTreeSet<Seq>>,
    /// Which task an activity id means.
    ids: HashMap<(RunNo, OperationId), Seq>,
    inputs: Inputs,
    lanes: Vec<Lane>,
    /// Tasks that can be tried and whose process died while they were. Those that merely ran beside the one that killed
    /// it clear themselves: of all of them one is tried at a time, those that are least suspect first.
    struck: BTreeMap<(u32, TaskNo), Key>,
    /// The one of them that is tried now, and which attempt that is.
    trial: Option<(Key, u32)>,
    /// How many are tried no more.
    quarantined: usize,
}

/// The tasks of one queue that can be tried, and those that are.
struct Lane {
    queue: Name,
    /// How many are tried at a time.
    places: usize,
    running: usize,
    /// How many nobody here serves.
    unserved: usize,
    ready: BTreeMap<(i32, TaskNo), Key>,
    /// How many wait, run and are not served, for whoever measures.
    shown: [Level; 3],
}

impl Lane {
    fn new(queue: Name, places: usize) -> Self {
        let meters = [meter::ACTIVITIES_WAITING, meter::ACTIVITIES_RUNNING, meter::ACTIVITIES_UNSERVED];
        let shown = meters.map(|meter| meter.level(&[&queue]));
        Self { queue, places, running: 0, unserved: 0, ready: BTreeMap::new(), shown }
    }

    fn change<R>(&mut self, change: impl FnOnce(&mut Self) -> R) -> R {
        let result = change(self);
        let [waiting, running, unserved] = &mut self.shown;
        waiting.set(self.ready.len());
        running.set(self.running);
        unserved.set(self.unserved);
        result
    }
}

impl Desk {
    /// A desk for these queues, of each of which so many tasks are tried at a time.
    pub(crate) fn new(queues: impl IntoIterator<Item = (Name, usize)>) -> Self {
        Self { lanes: queues.into_iter().map(|(queue, places)| Lane::new(queue, places)).collect(), ..Self::default() }
    }

    fn lane<'a>(lanes: &'a mut [Lane], queue: &Name) -> Option<&'a mut Lane> {
        lanes.iter_mut().find(|lane| lane.queue == *queue)
    }

    fn make_place(lanes: &mut [Lane], queue: &Name) {
        if let Some(lane) = Self::lane(lanes, queue) {
            lane.change(|lane| lane.running -= 1);
        }
    }

    pub(crate) fn add(&mut self, run: RunNo, mut task: Task) {
        self.inputs.add(&mut task);
        let key = (run, task.command.seq);
        match task.state {
            TaskState::Ready => self.enlist(key, &task),
            TaskState::Quarantined => self.quarantined += 1,
            _ => {}
        }
        self.of_run.entry(run).or_default().insert(key.1);
        self.ids.insert((run, task.command.id), key.1);
        self.tasks.insert(key, task);
    }

    /// A task can be tried.
    fn enlist(&mut self, key: Key, task: &Task) {
        let Some(lane) = Self::lane(&mut self.lanes, task.queue()) else { return };
        let before = match task.strikes {
            0 => lane.change(|lane| lane.ready.insert((task.priority, task.no), key)),
            strikes => self.struck.insert((strikes, task.no), key),
        };
        assert_eq!(before, None, "a task waits in one place");
    }

    /// What a task was tried for is over, so it did not kill the process.
    fn clear(&mut self, key: Key) {
        self.trial.take_if(|(tried, _)| *tried == key);
        if let Some(task) = self.tasks.get_mut(&key) {
            task.strikes = 0;
        }
    }

    pub(crate) fn get(&self, run: RunNo, seq: Seq) -> Option<&Task> {
        self.tasks.get(&(run, seq))
    }

    /// The task of an activity by its id.
    pub(crate) fn find(&self, run: RunNo, activity_id: &str) -> Option<&Task> {
        let seq = self.ids.get(&(run, activity_id.parse().ok()?))?;
        self.get(run, *seq)
    }

    /// A task that runs this very attempt.
    pub(crate) fn attempting(&mut self, run: RunNo, seq: Seq, attempt: u32) -> Option<(&mut Task, Attempting)> {
        let task = self.tasks.get_mut(&(run, seq)).filter(|task| task.attempt == attempt)?;
        let attempting = task.attempting()?.clone();
        Some((task, attempting))
    }

    /// An attempt is left to somebody outside, and that is noted: its place is free.
    pub(crate) fn leave(&mut self, run: RunNo, seq: Seq, attempt: u32) {
        if let Some((task, mut attempting)) = self.attempting(run, seq, attempt)
            && task.is_running()
        {
            attempting.leaves = false;
            task.state = TaskState::Outside(attempting);
            let queue = task.queue().clone();
            Self::make_place(&mut self.lanes, &queue);
            self.clear((run, seq));
        }
    }

    pub(crate) fn get_mut(&mut self, run: RunNo, seq: Seq) -> Option<&mut Task> {
        self.tasks.get_mut(&(run, seq))
    }

    /// The tasks of a run, in order.
    pub(crate) fn of_run(&self, run: RunNo) -> Vec<Seq> {
        self.of_run.get(&run).into_iter().flatten().copied().collect()
    }

    /// Takes a task off the desk.
    pub(crate) fn remove(&mut self, run: RunNo, seq: Seq) -> Option<Task> {
        let task = self.tasks.remove(&(run, seq))?;
        self.ids.remove(&(run, task.command.id));
        self.inputs.remove(&task);
        self.clear((run, seq));
        self.struck.remove(&(task.strikes, task.no));
        self.quarantined -= usize::from(matches!(task.state, TaskState::Quarantined));
        if let Some(lane) = Self::lane(&mut self.lanes, task.queue()) {
            lane.change(|lane| match task.state {
                TaskState::Running(_) => lane.running -= 1,
                TaskState::Unserved => lane.unserved -= 1,
                TaskState::Outside(_) | TaskState::Quarantined => {}
                TaskState::Waiting { .. } | TaskState::Ready => drop(lane.ready.remove(&(task.priority, task.no))),
            });
        }
        if let Some(seqs) = self.of_run.get_mut(&run) {
            seqs.remove(&seq);
            if seqs.is_empty() {
                self.of_run.remove(&run);
            }
        }
        Some(task)
    }

    /// An attempt is over and the task is not: it waits for the next.
    pub(crate) fn wait(&mut self, run: RunNo, seq: Seq, until: Timestamp) {
        if let Some(task) = self.tasks.get_mut(&(run, seq)) {
            if matches!(task.state, TaskState::Running(_)) {
                Self::make_place(&mut self.lanes, task.queue());
            }
            task.attempt += 1;
            task.state = TaskState::Waiting { until };
        }
        self.clear((run, seq));
    }

    /// A task that waited may be tried again.
    pub(crate) fn make_ready(&mut self, run: RunNo, seq: Seq, attempt: u32) {
        if let Some(task) = self.tasks.get_mut(&(run, seq))
            && task.attempt == attempt
            && matches!(task.state, TaskState::Waiting { .. })
        {
            task.state = TaskState::Ready;
            let task = task.clone();
            self.enlist((run, seq), &task);
        }
    }

    /// The quarantined tasks of a run.
    pub(crate) fn quarantined_of(&self, run: RunNo) -> Vec<TaskNo> {
        let tasks = self.of_run.get(&run).into_iter().flatten().filter_map(|seq| self.tasks.get(&(run, *seq)));
        tasks.filter(|task| matches!(task.state, TaskState::Quarantined)).map(|task| task.no).collect()
    }

    /// Nothing is held against the quarantined tasks of a run any more, and that is durable: they can be tried again.
    pub(crate) fn release(&mut self, run: RunNo) {
        for seq in self.of_run(run) {
            if let Some(task) = self.tasks.get_mut(&(run, seq))
                && matches!(task.state, TaskState::Quarantined)
            {
                (task.state, task.strikes) = (TaskState::Ready, 0);
                self.quarantined -= 1;
                let task = task.clone();
                self.enlist((run, seq), &task);
            }
        }
    }

    /// Whether a place is free in this queue.
    pub(crate) fn has_place(&self, queue: &Name) -> bool {
        self.lanes.iter().any(|lane| lane.queue == *queue && lane.running < lane.places)
    }

    /// The next task to try, if a place is free. It counts as running from now on.
    pub(crate) fn next(&mut self, now: Timestamp) -> Option<(RunNo, Task)> {
        let key = self.next_struck().or_else(|| self.next_ready())?;
        let task = self.tasks.get_mut(&key)?;
        task.state = TaskState::Running(Attempting::since(now));
        Some((key.0, task.clone()))
    }

    fn next_ready(&mut self) -> Option<Key> {
        let lanes = self.lanes.iter_mut().filter(|lane| lane.running < lane.places && !lane.ready.is_empty());
        let lane = lanes.min_by_key(|lane| lane.ready.first_key_value().map(|(rank, _)| *rank))?;
        let (_, key) = lane.change(|lane| {
            lane.running += 1;
            lane.ready.pop_first()
        })?;
        Some(key)
    }

    fn next_struck(&mut self) -> Option<Key> {
        if self.trial.is_some() {
            return None;
        }
        let queue = |key: &Key| self.tasks.get(key).map(Task::queue);
        let has_place = |(_, key): &(_, &Key)| queue(key).is_some_and(|queue| self.has_place(queue));
        let (rank, key) = self.struck.iter().find(has_place).map(|(rank, key)| (*rank, *key))?;
        self.struck.remove(&rank);
        let task = self.tasks.get(&key)?;
        Self::lane(&mut self.lanes, task.queue())?.change(|lane| lane.running += 1);
        self.trial = Some((key, task.attempt));
        Some(key)
    }

    /// This attempt keeps no others waiting any more. What is held against its task stays until it ends.
    pub(crate) fn end_trial(&mut self, run: RunNo, seq: Seq, attempt: u32) {
        self.trial.take_if(|trial| *trial == ((run, seq), attempt));
    }

    /// Nobody here serves the type of a task that was taken to be tried.
    pub(crate) fn unserved(&mut self, run: RunNo, seq: Seq) {
        self.trial.take_if(|(tried, _)| *tried == (run, seq));
        if let Some(task) = self.tasks.get_mut(&(run, seq)) {
            task.state = TaskState::Unserved;
            if let Some(lane) = Self::lane(&mut self.lanes, task.queue()) {
                lane.change(|lane| {
                    lane.running -= 1;
                    lane.unserved += 1;
                });
            }
        }
    }

    /// How an attempt that is about to start can be reached. Says whether it is still wanted, and if it was asked to stop
    /// meanwhile, why.
    pub(crate) fn hold(
        &mut self,
        run: RunNo,
        seq: Seq,
        attempt: u32,
        grip: &Grip,
        alarms: &[AlarmNo],
    ) -> Option<Option<String>> {
        let (task, mut attempting) = self.attempting(run, seq, attempt)?;
        attempting.grip = Some(grip.clone());
        attempting.alarms = alarms.to_vec();
        task.set_attempting(attempting);
        Some(task.cancelled.clone())
    }

    /// A task of this run that is not tried before somebody does something: serves it, or releases it.
    pub(crate) fn held_of(&self, run: RunNo) -> Option<&Task> {
        let is_held = |task: &&Task| matches!(task.state, TaskState::Unserved | TaskState::Quarantined);
        // Looked at with every turn of every run, and hardly ever is there one.
        let any = self.quarantined > 0 || self.lanes.iter().any(|lane| lane.unserved > 0);
        let seqs = self.of_run.get(&run).filter(|_| any)?;
        seqs.iter().filter_map(|seq| self.tasks.get(&(run, *seq))).find(is_held)
    }

    /// Every task that is being tried.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().filter(|task| task.is_running())
    }

    /// Takes every task of this queue that is being tried off the desk.
    pub(crate) fn take_running(&mut self, queue: &Name) -> Vec<Task> {
        let running = |(key, task): (&Key, &Task)| (task.is_running() && task.queue() == queue).then_some(*key);
        let keys: BTreeSet<Key> = self.tasks.iter().filter_map(running).collect();
        keys.into_iter().filter_map(|(run, seq)| self.remove(run, seq)).collect()
    }

    /// Every attempt that runs.
    pub(crate) fn grips(&self) -> impl Iterator<Item = &Grip> {
        self.tasks.values().filter_map(|task| match &task.state {
            TaskState::Running(attempting) => attempting.grip.as_ref(),
            _ => None,
        })
    }
}

/// What a pending activity is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivityState {
    /// It is pending; only the process that serves it knows more.
    Pending,
    /// It waits for its next attempt.
    Waiting,
    /// It waits for a free place.
    Ready,
    /// It is being tried.
    Running,
    /// Its code has ended, and somebody outside completes it by its token.
    Outside,
    /// Nobody here serves its type.
    Unserved,
    /// Its process died too often while it was tried: it waits until somebody releases it.
    Quarantined,
}

impl fmt::Display for ActivityState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Waiting => "waits for its next attempt",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Outside => "somebody outside completes it",
            Self::Unserved => "no activity of this type is served here",
            Self::Quarantined => "quarantined: it is not tried until it is released",
        })
    }
}

/// A pending activity, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingActivity {
    /// Its seq.
    pub seq: Seq,
    /// Its id, the stable part of the idempotency key.
    pub id: Name,
    /// Its type.
    pub activity: Name,
    /// The queue it waits in.
    pub queue: Name,
    /// What it is doing.
    pub state: ActivityState,
    /// The attempt that runs, or that comes next, from 1.
    pub attempt: u32,
    /// How many attempts there are at most; 0 means no limit.
    pub attempts: u32,
    /// Which task goes first.
    pub priority: i32,
    /// When it was scheduled.
    pub scheduled: Timestamp,
    /// When the attempt that runs was started.
    pub started: Option<Timestamp>,
    /// When it is tried again.
    pub next_attempt: Option<Timestamp>,
    /// When the attempt that runs last reported.
    pub last_heartbeat: Option<Timestamp>,
    /// What was last reported of its progress.
    pub details: Option<Payload>,
    /// How the last attempt failed.
    pub last_failure: Option<Failure>,
}

impl PendingActivity {
    pub(crate) fn of(task: &Task) -> Self {
        let (state, started, next_attempt, last_heartbeat) = match &task.state {
            TaskState::Waiting { until } => (ActivityState::Waiting, None, Some(*until), None),
            TaskState::Ready => (ActivityState::Ready, None, None, None),
            TaskState::Unserved => (ActivityState::Unserved, None, None, None),
            TaskState::Quarantined => (ActivityState::Quarantined, None, None, None),
            TaskState::Running(attempting) => {
                (ActivityState::Running, Some(attempting.started), None, Some(attempting.last_heartbeat))
            }
            TaskState::Outside(attempting) => {
                (ActivityState::Outside, Some(attempting.started), None, Some(attempting.last_heartbeat))
            }
        };
        Self {
            seq: task.command.seq,
            id: task.command.id.to_string().into(),
            activity: task.command.activity.clone(),
            queue: task.command.queue.clone().unwrap_or_else(|| task.about.queue.clone()),
            state,
            attempt: task.attempt,
            attempts: task.command.retry.as_ref().map_or(0, |retry| retry.attempts),
            priority: task.priority,
            scheduled: task.scheduled,
            started,
            next_attempt,
            last_heartbeat,
            details: task.details.clone(),
            last_failure: task.failure.clone(),
        }
    }
}
