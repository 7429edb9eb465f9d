//! The task queue where several nodes work at the tasks of a store: tasks that leave with their runs, and places for tasks that
//! no node has.

use std::collections::BTreeSet;

use dacapo_core::Name;
use dacapo_store::{RunNo, TaskNo};

use crate::activity::task::Task;
use crate::activity::task_queue::TaskQueue;
use crate::activity::task_table::{Key, Lane};
use crate::timer::wheel::AlarmNo;

/// The rest of the tasks of runs that another node plays from now on.
#[derive(Default)]
pub(crate) struct LeftTasks {
    /// The alarms of tasks that were removed.
    pub(crate) alarms: Vec<AlarmNo>,
    /// The tasks whose attempts run.
    pub(crate) running: Vec<TaskNo>,
}

impl TaskQueue {
    /// Removes the tasks of runs that another node plays from now on, but for those whose attempts run.
    pub(crate) fn leave(&self, is_left: impl Fn(RunNo) -> bool) -> LeftTasks {
        let state = &mut *self.0.lock();
        let keys: Vec<Key> = state.tasks.keys().filter(|(run, _)| is_left(*run)).copied().collect();
        let mut left = LeftTasks::default();
        for key in keys {
            match state.tasks.get(&key) {
                Some(task) if task.is_running() => left.running.push(task.no),
                Some(task) => {
                    left.alarms.extend(task.attempting().into_iter().flat_map(|attempting| attempting.alarms.clone()));
                    drop(state.remove(key));
                }
                None => {}
            }
        }
        left
    }

    /// Removes all tasks.
    pub(crate) fn remove_all(&self) -> Vec<Task> {
        let state = &mut *self.0.lock();
        let keys: Vec<Key> = state.tasks.keys().copied().collect();
        keys.into_iter().filter_map(|key| state.remove(key)).collect()
    }

    /// Returns those of the tasks that the store has as this node's which are not in memory, and were not at the last look.
    pub(crate) fn unknown_again(&self, held: Vec<TaskNo>) -> Vec<TaskNo> {
        let state = &mut *self.0.lock();
        let known: BTreeSet<TaskNo> = state.tasks.values().map(|task| task.no).collect();
        let unknown: BTreeSet<TaskNo> = held.into_iter().filter(|task| !known.contains(task)).collect();
        let before = std::mem::replace(&mut state.unknown, unknown);
        state.unknown.intersection(&before).copied().collect()
    }

    /// The queues with places for which no task is ready, each with their number.
    pub(crate) fn free_places(&self) -> Vec<(Name, usize)> {
        let state = self.0.lock();
        let free = |lane: &Lane| lane.places.saturating_sub(lane.running + lane.ready.len());
        state.lanes.iter().map(|lane| (lane.queue.clone(), free(lane))).filter(|(_, free)| *free > 0).collect()
    }

    /// The number of places of a queue, and of the tasks that run in them or wait for one. None if the queue is not served.
    pub(crate) fn backlog(&self, queue: &Name) -> Option<(usize, usize)> {
        let state = self.0.lock();
        let lane = state.lanes.iter().find(|lane| lane.queue == *queue)?;
        Some((lane.places, lane.running + lane.ready.len()))
    }

    /// Notes whether there may be more tasks in the store that no node has.
    pub(crate) fn set_more(&self, has_more: bool) {
        self.0.lock().has_more = has_more;
    }

    /// Whether places are free for tasks in the store that no node has. It is said once.
    pub(crate) fn takes_more(&self) -> bool {
        let state = &mut *self.0.lock();
        let is_free = |lane: &Lane| lane.running + lane.ready.len() < lane.places;
        let takes = state.has_more && state.lanes.iter().any(is_free);
        state.has_more &= !takes;
        takes
    }
}
