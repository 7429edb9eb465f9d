//! The tables behind the task queue: all tasks, those that are ready, those that run. Pure data; [`TaskQueue`] holds the
//! lock.
//!
//! [`TaskQueue`]: crate::activity::task_queue::TaskQueue

use std::collections::{BTreeMap, BTreeSet, HashMap};

use dacapo_core::{Name, OperationId, Seq, Timestamp};
use dacapo_store::{AttemptWrite, RunNo, TaskNo};
use dacapo_worker::{Level, meter};

use crate::activity::input_cache::InputCache;
use crate::activity::task::{Task, TaskState};

/// The key of a task: its run and its sequence number.
pub(crate) type Key = (RunNo, Seq);

#[derive(Default)]
pub(crate) struct TaskTable {
    pub(crate) tasks: HashMap<Key, Task>,
    /// The tasks of each run.
    pub(crate) of_run: HashMap<RunNo, BTreeSet<Seq>>,
    /// The task of each activity id.
    pub(crate) ids: HashMap<(RunNo, OperationId), Seq>,
    pub(crate) inputs: InputCache,
    pub(crate) lanes: Vec<Lane>,
    /// Tasks that are ready and on probation, by their crash count.
    pub(crate) with_crash_count: BTreeMap<(u32, TaskNo), Key>,
    /// The task of these that runs now, and the number of its attempt.
    pub(crate) probation: Option<(Key, u32)>,
    /// The number of tasks that are delayed because of their crash count.
    pub(crate) delayed: usize,
    /// The number of quarantined tasks.
    pub(crate) quarantined: usize,
    /// Tasks that the store had as this node's at the last look, and that were not in memory.
    pub(crate) unknown: BTreeSet<TaskNo>,
    /// Whether there may be more tasks in the store that no node has.
    pub(crate) has_more: bool,
}

/// The ready and running tasks of one queue.
pub(crate) struct Lane {
    pub(crate) queue: Name,
    /// The number of tasks that may run at a time.
    pub(crate) places: usize,
    pub(crate) running: usize,
    /// The number of tasks whose type is not served.
    pub(crate) unserved: usize,
    pub(crate) ready: BTreeMap<(i32, TaskNo), Key>,
    /// The meters of tasks that wait, run and are not served.
    shown: [Level; 3],
}

impl Lane {
    pub(crate) fn new(queue: Name, places: usize) -> Self {
        let meters = [meter::ACTIVITIES_WAITING, meter::ACTIVITIES_RUNNING, meter::ACTIVITIES_UNSERVED];
        let shown = meters.map(|meter| meter.level(&[&queue]));
        Self { queue, places, running: 0, unserved: 0, ready: BTreeMap::new(), shown }
    }

    pub(crate) fn change<R>(&mut self, change: impl FnOnce(&mut Self) -> R) -> R {
        let result = change(self);
        let [waiting, running, unserved] = &mut self.shown;
        waiting.set(self.ready.len());
        running.set(self.running);
        unserved.set(self.unserved);
        result
    }
}

impl TaskTable {
    /// The task, if this is its attempt that runs here or is external.
    pub(crate) fn attempting(&mut self, run: RunNo, seq: Seq, attempt: u32) -> Option<&mut Task> {
        self.tasks.get_mut(&(run, seq)).filter(|task| task.attempt == attempt && task.attempting().is_some())
    }

    /// Adds a task to those that can run.
    pub(crate) fn enlist(&mut self, key: Key, task: &Task) {
        let Some(lane) = lane(&mut self.lanes, task.queue()) else { return };
        let before = match task.crash_count {
            0 => lane.change(|lane| lane.ready.insert((task.priority, task.no), key)),
            count => self.with_crash_count.insert((count, task.no), key),
        };
        assert_eq!(before, None, "a task waits in one place");
    }

    /// Resets the crash count of a task whose attempt ended or made progress: it did not kill the process.
    pub(crate) fn clear(&mut self, key: Key) {
        self.probation.take_if(|(on_probation, _)| *on_probation == key);
        if let Some(task) = self.tasks.get_mut(&key) {
            task.crash_count = 0;
        }
    }

    pub(crate) fn free_place(&mut self, queue: &Name) {
        if let Some(lane) = lane(&mut self.lanes, queue) {
            lane.change(|lane| lane.running -= 1);
        }
    }

    pub(crate) fn has_place(&self, queue: &Name) -> bool {
        self.lanes.iter().any(|lane| lane.queue == *queue && lane.running < lane.places)
    }

    /// Makes a task wait for its next attempt, after one that ended. Returns the write for the store.
    pub(crate) fn wait(&mut self, key: Key, until: Timestamp) -> Option<AttemptWrite> {
        let task = self.tasks.get_mut(&key)?;
        let freed = task.is_running().then(|| task.queue().clone());
        task.attempt += 1;
        task.state = TaskState::Waiting { until };
        if let Some(queue) = freed {
            self.free_place(&queue);
        }
        self.clear(key);
        self.tasks.get(&key).map(|task| task.write(until))
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<Task> {
        let task = self.tasks.remove(&key)?;
        self.ids.remove(&(key.0, task.command.id));
        self.inputs.remove(&task);
        self.clear(key);
        self.with_crash_count.remove(&(task.crash_count, task.no));
        self.quarantined -= usize::from(matches!(task.state, TaskState::Quarantined));
        self.delayed -= usize::from(task.is_delayed());
        if let Some(lane) = lane(&mut self.lanes, task.queue()) {
            lane.change(|lane| match task.state {
                TaskState::Running(_) => lane.running -= 1,
                TaskState::Unserved => lane.unserved -= 1,
                TaskState::External(_) | TaskState::Quarantined => {}
                TaskState::Waiting { .. } | TaskState::Ready => drop(lane.ready.remove(&(task.priority, task.no))),
            });
        }
        if let Some(seqs) = self.of_run.get_mut(&key.0) {
            seqs.remove(&key.1);
            if seqs.is_empty() {
                self.of_run.remove(&key.0);
            }
        }
        Some(task)
    }

    pub(crate) fn next_ready(&mut self) -> Option<Key> {
        let lanes = self.lanes.iter_mut().filter(|lane| lane.running < lane.places && !lane.ready.is_empty());
        let lane = lanes.min_by_key(|lane| lane.ready.first_key_value().map(|(rank, _)| *rank))?;
        let (_, key) = lane.change(|lane| {
            lane.running += 1;
            lane.ready.pop_first()
        })?;
        Some(key)
    }

    pub(crate) fn next_with_crash_count(&mut self) -> Option<Key> {
        if self.probation.is_some() {
            return None;
        }
        let queue = |key: &Key| self.tasks.get(key).map(Task::queue);
        let has_place = |(_, key): &(_, &Key)| queue(key).is_some_and(|queue| self.has_place(queue));
        let (rank, key) = self.with_crash_count.iter().find(has_place).map(|(rank, key)| (*rank, *key))?;
        self.with_crash_count.remove(&rank);
        let task = self.tasks.get(&key)?;
        lane(&mut self.lanes, task.queue())?.change(|lane| lane.running += 1);
        self.probation = Some((key, task.attempt));
        Some(key)
    }
}

pub(crate) fn lane<'a>(lanes: &'a mut [Lane], queue: &Name) -> Option<&'a mut Lane> {
    lanes.iter_mut().find(|lane| lane.queue == *queue)
}
