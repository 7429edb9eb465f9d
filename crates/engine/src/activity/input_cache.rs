//! The inputs of pending activities. There may be any number of them, so they are kept in memory up to a bound; what is
//! beyond it is read again from the turn that scheduled it, when the activity is tried.

use std::sync::Arc;

use dacapo_core::{CommandKind, Payload, ScheduleActivity};
use dacapo_store::{RunNo, StoreError};

use crate::activity::task_queue::Task;
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
    /// The input of a task that is about to be tried. None if it is gone.
    pub(crate) fn input_of(&self, run: RunNo, task: &Task) -> Result<Option<Vec<Payload>>, StoreError> {
        if task.has_input {
            return Ok(Some(task.command.input.clone()));
        }
        let (turn, position) = task.origin;
        let mut records = lock(&self.origins);
        let record = records.get(&*self.store, run, turn)?;
        let command = record.and_then(|record| record.commands.get(position as usize)).map(|command| &command.kind);
        Ok(match command {
            Some(CommandKind::Activity(command)) => Some(command.input.clone()),
            _ => None,
        })
    }

    /// A task that cannot be tried because its input is gone: with its run, or the store is damaged.
    pub(crate) fn without_input(self: &Arc<Self>, run: RunNo, task: &Task) {
        let seq = task.command.seq;
        let is_open = self.store.run(run).is_ok_and(|row| row.is_some_and(|row| row.status.is_open()));
        if !is_open {
            drop(self.desk().remove(run, seq));
            return;
        }
        self.desk().unserved(run, seq);
        let reason = format!(
            "what activity {:?} ({}) is given cannot be read: the store is damaged. Restore it from a backup, or complete the \
             activity from outside",
            task.command.activity, task.command.id
        );
        self.tell_stuck(&task.about.workflow_id, &task.about.run_id, "", &reason);
        self.mark_waiting(run, task, reason);
    }
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Name, Pins, Seq};
    use dacapo_store::TaskNo;

    use super::*;
    use crate::activity::task_queue::TaskState;
    use crate::run::cached_run::About;

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
