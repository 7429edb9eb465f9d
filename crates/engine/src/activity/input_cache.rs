//! The inputs of pending activities. There may be any number of them, so the engine keeps them in memory up to a bound. It
//! reads an input beyond the bound again from the turn that scheduled the activity, when an attempt starts.

use std::sync::Arc;

use dacapo_core::ScheduleActivity;

use crate::activity::task::Task;

/// The maximum number of bytes of inputs in memory.
const MOST: usize = 32 << 20;

/// The number of bytes of inputs in memory.
#[derive(Default)]
pub(crate) struct InputCache {
    bytes: usize,
}

impl InputCache {
    /// Keeps the input of a task in memory, or drops it from the task if there is no room.
    pub(crate) fn add(&mut self, task: &mut Task) {
        let bytes = size(&task.command);
        match self.bytes + bytes <= MOST {
            true => self.bytes += bytes,
            false => {
                // Cloning the command does not copy the bytes of its payloads.
                task.command = Arc::new(ScheduleActivity { input: Vec::new(), ..(*task.command).clone() });
                task.has_input = false;
            }
        }
    }

    /// Frees the room of a task that is removed.
    pub(crate) fn remove(&mut self, task: &Task) {
        if task.has_input {
            self.bytes -= size(&task.command);
        }
    }
}

fn size(command: &ScheduleActivity) -> usize {
    command.input.iter().map(|payload| payload.inline_size()).sum()
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Name, Payload, Pins, Seq};
    use dacapo_store::TaskNo;
    use dacapo_worker::RunName;

    use super::*;
    use crate::activity::task::TaskState;
    use crate::run::info::RunInfo;

    fn task(number: i64, bytes: usize) -> Task {
        let name = Name::from_static("a");
        let run_name =
            RunName { run_id: name.clone(), workflow_id: name.clone(), workflow: name.clone(), queue: name.clone() };
        let info = RunInfo {
            name: Arc::new(run_name),
            first_run_id: name.clone(),
            parent: None,
            pins: Pins::default(),
            epoch: Default::default(),
        };
        let command = ScheduleActivity {
            seq: Seq(number as u64),
            id: Default::default(),
            activity: name,
            input: vec![Payload::json(vec![b'1'; bytes])],
            headers: Default::default(),
            queue: None,
            timeouts: Default::default(),
            retry: None,
            cancel: Default::default(),
            priority: Default::default(),
            summary: None,
        };
        Task {
            no: TaskNo(number),
            info: Arc::new(info),
            command: Arc::new(command),
            has_input: true,
            origin: (0, number as u32),
            scheduled: Default::default(),
            over: None,
            priority: 0,
            attempt: 1,
            failure: None,
            details: None,
            state: TaskState::Ready,
            cancelled: None,
            crash_count: 0,
        }
    }

    #[test]
    fn inputs_are_kept_up_to_a_bound_and_again_when_there_is_room() {
        let mut inputs = InputCache::default();
        let mut kept = Vec::new();
        for number in 0..100 {
            let mut task = task(number, 1 << 20);
            inputs.add(&mut task);
            assert_eq!(task.has_input, number < 32);
            assert_eq!(task.command.input.len(), usize::from(number < 32));
            kept.push(task);
        }
        let mut small = task(100, 1);
        inputs.add(&mut small);
        assert!(!small.has_input, "there is no room at all");
        // A task without its input takes no room, and its removal frees none.
        inputs.remove(&kept[99]);
        inputs.add(&mut small);
        assert!(!small.has_input);
        inputs.remove(&kept[0]);
        let mut next = task(101, 1 << 20);
        inputs.add(&mut next);
        assert!(next.has_input);
    }
}
