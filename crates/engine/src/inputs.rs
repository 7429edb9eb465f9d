//! The inputs of pending activities. There may be any number of them, so they are kept in memory up to a bound; what is
//! beyond it is read again from the turn that scheduled it, when the activity is tried.

use std::sync::Arc;

use dacapo_core::{CommandKind, Payload, ScheduleActivity};
use dacapo_store::{RunNo, StoreError};

use crate::desk::Task;
use crate::inner::{Inner, lock};

/// So many bytes of inputs are kept.
const MOST: usize = 32 << 20;

/// How much is kept.
#[derive(Default)]
pub(crate) struct Inputs {
    bytes: usize,
}

impl Inputs {
    /// Keeps the input of a task, or takes it from it.
    pub(crate) fn add(&mut self, task: &mut Task) {
        let bytes = size(&task.command);
        match self.bytes + bytes <= MOST {
            true => self.bytes += bytes,
            false => {
                // Of the payloads themselves a clone makes no copy.
                task.command = Arc::new(ScheduleActivity { input: Vec::new(), ..(*task.command).clone() });
                task.has_input = false;
            }
        }
    }

    /// A task is gone.
    pub(crate) fn remove(&mut self, task: &Task) {
        if task.has_input {
            self.bytes -= size(&task.command);
        }
    }
}

fn size(command: &ScheduleActivity) -> usize {
    command.input.iter().map(|payload| payload.data.len()).sum()
}

impl Inner {
    /// The input of a task that is about to be tried.
    pub(crate) fn input_of(&self, run: RunNo, task: &Task) -> Result<Vec<Payload>, StoreError> {
        if task.has_input {
            return Ok(task.command.input.clone());
        }
        let (turn, position) = task.origin;
        let mut records = lock(&self.origins);
        let record = records.get(&*self.store, run, turn)?;
        match record.and_then(|record| record.commands.get(position as usize)).map(|command| &command.kind) {
            Some(CommandKind::Activity(command)) => Ok(command.input.clone()),
            _ => {
                Err(StoreError::Corrupt(format!("turn {turn} of {run} does not say what {} is given", task.command.id)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Name, Pins, Seq};
    use dacapo_store::TaskNo;

    use super::*;
    use crate::desk::TaskState;
    use crate::live::About;

    fn task(number: i64, bytes: usize) -> Task {
        let name = Name::from_static("a");
        let about = About {
            run_id: name.clone(),
            workflow_id: name.clone(),
            workflow: name.clone(),
            queue: name.clone(),
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
            about: Arc::new(about),
            command: Arc::new(command),
            has_input: true,
            origin: (0, number as u32),
            scheduled: Default::default(),
            priority: 0,
            attempt: 1,
            failure: None,
            details: None,
            state: TaskState::Ready,
            cancelled: None,
            strikes: 0,
        }
    }

    #[test]
    fn inputs_are_kept_up_to_a_bound_and_again_when_there_is_room() {
        let mut inputs = Inputs::default();
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
        // One that has none takes no room, and makes none when it goes.
        inputs.remove(&kept[99]);
        inputs.add(&mut small);
        assert!(!small.has_input);
        inputs.remove(&kept[0]);
        let mut next = task(101, 1 << 20);
        inputs.add(&mut next);
        assert!(next.has_input);
    }
}
