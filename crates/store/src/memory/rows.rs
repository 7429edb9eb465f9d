//! The primitives of the store in memory.

use dacapo_core::{AttributeValue, Name, ParentClose, Seq, Timestamp};

use super::Tables;
use crate::rows::{Rows, SWEEP_BYTES};
use crate::{
    AttemptWrite, Epoch, MessageNo, MessageRow, NewMessage, NewRun, NewTask, NodeNo, RunNo, RunRow, Status, StoreError,
    Stuck, TaskNo, TaskRow, TimerKind, TimerRow,
};

type Result<T> = std::result::Result<T, StoreError>;

impl Rows for Tables {
    fn is_shared(&self) -> bool {
        self.writer.is_some()
    }

    fn insert_run(&mut self, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Result<RunNo> {
        let no = RunNo::new(self.next(), self.shard_of(&new.queue));
        let row = RunRow::started(no, new, turns, owner, epoch);
        self.runs.insert(no, row);
        self.open.insert(new.workflow_id.clone(), no);
        if let Some(request) = &new.request {
            self.requests.insert(request.clone(), no);
        }
        Ok(no)
    }

    fn insert_closed(&mut self, run: &RunRow, request: Option<&Name>, no: Option<RunNo>) -> Result<RunNo> {
        let no = no.unwrap_or_else(|| RunNo::new(self.next(), self.shard_of(&run.queue)));
        if let Some(request) = request {
            self.requests.insert(request.clone(), no);
        }
        self.runs.insert(no, run.imported(no));
        Ok(no)
    }

    fn last_no(&mut self, from: RunNo, until: RunNo) -> Result<Option<RunNo>> {
        let run = self.runs.range(from..until).next_back().map(|(no, _)| *no);
        Ok(run.max(self.garbage.range(from..until).next_back().copied()))
    }

    fn run_of_id(&mut self, run_id: &str) -> Result<Option<RunNo>> {
        Ok(self.runs.values().find(|row| row.run_id == *run_id).map(|row| row.no))
    }

    fn run(&mut self, no: RunNo) -> Result<Option<RunRow>> {
        Ok(self.runs.get(&no).cloned())
    }

    fn open_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>> {
        Ok(self.open.get(workflow_id).copied())
    }

    fn last_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>> {
        Ok(self.runs.values().rev().find(|row| row.workflow_id == *workflow_id).map(|row| row.no))
    }

    fn requested_run(&mut self, request: &str) -> Result<Option<RunNo>> {
        Ok(self.requests.get(request).copied())
    }

    fn open_children(&mut self, run: RunNo) -> Result<Vec<(RunNo, ParentClose)>> {
        let child = |row: &RunRow| {
            let parent = row.parent.as_ref().filter(|parent| parent.run == run && row.status.is_open())?;
            Some((row.no, parent.close))
        };
        Ok(self.runs.values().filter_map(child).collect())
    }

    fn advance(&mut self, run: RunNo, turn: u64, epoch: Epoch, crash_count: u32) -> Result<bool> {
        let Some(row) = self.runs.get_mut(&run) else { return Ok(false) };
        let passes = row.status.is_open() && row.epoch == epoch && row.turns == turn;
        if passes {
            row.turns += 1;
            (row.stuck, row.crash_count) = (None, crash_count);
        }
        Ok(passes)
    }

    fn own(&mut self, run: RunNo, seen: Epoch, node: NodeNo, epoch: Epoch) -> Result<bool> {
        let Some(row) = self.runs.get_mut(&run) else { return Ok(false) };
        let passes = row.status.is_open() && row.epoch == seen;
        if passes {
            (row.owner, row.epoch) = (Some(node), epoch);
        }
        Ok(passes)
    }

    fn delete_run(&mut self, run: RunNo) -> Result<()> {
        self.runs.remove(&run);
        self.requests.retain(|_, of| *of != run);
        self.attributes.retain(|(of, _), _| *of != run);
        self.delete_tasks(run)?;
        self.garbage.insert(run);
        Ok(())
    }

    fn sweep(&mut self, most: usize) -> Result<bool> {
        let (mut rows, mut bytes) = (0, 0);
        while let Some(run) = self.garbage.first().copied() {
            let turns = self.turns.range((run, 0)..=(run, u64::MAX)).next().map(|(key, _)| *key);
            let message = self.keys.range((run, Name::default())..).next().filter(|((of, _), _)| *of == run);
            match (turns, message.map(|(key, no)| (key.clone(), *no))) {
                _ if rows >= most || bytes >= SWEEP_BYTES => return Ok(true),
                (Some(turn), _) => bytes += self.turns.remove(&turn).map_or(0, |record| record.len()),
                (None, Some((key, no))) => {
                    self.keys.remove(&key);
                    bytes += self.messages.remove(&no).map_or(0, |row| row.job.len());
                }
                (None, None) => {
                    self.garbage.remove(&run);
                    continue;
                }
            }
            rows += 1;
        }
        Ok(false)
    }

    fn hand_over(&mut self, child: RunNo, parent: RunNo) -> Result<()> {
        if let Some(link) = self.runs.get_mut(&child).and_then(|row| row.parent.as_mut()) {
            (link.run, link.seq) = (parent, Seq(u64::MAX));
        }
        Ok(())
    }

    fn set_parent(&mut self, run: RunNo, parent: RunNo) -> Result<()> {
        if let Some(link) = self.runs.get_mut(&run).and_then(|row| row.parent.as_mut()) {
            link.run = parent;
        }
        Ok(())
    }

    fn close(&mut self, run: RunNo, status: Status, at: Timestamp, result: &[u8]) -> Result<()> {
        if let Some(row) = self.runs.get_mut(&run) {
            (row.status, row.closed, row.result) = (status, Some(at), Some(result.to_vec()));
            (row.owner, row.stuck) = (None, None);
            self.open.remove(&row.workflow_id);
        }
        Ok(())
    }

    fn set_stuck(&mut self, run: RunNo, stuck: Option<&Stuck>) -> Result<()> {
        if let Some(row) = self.runs.get_mut(&run) {
            row.stuck = stuck.cloned();
        }
        Ok(())
    }

    fn set_run_crash_count(&mut self, run: RunNo, crash_count: u32) -> Result<()> {
        if let Some(row) = self.runs.get_mut(&run) {
            row.crash_count = crash_count;
        }
        Ok(())
    }

    fn set_memo(&mut self, run: RunNo, memo: &[u8]) -> Result<()> {
        if let Some(row) = self.runs.get_mut(&run) {
            row.memo = memo.to_vec();
        }
        Ok(())
    }

    fn set_published(&mut self, run: RunNo, snapshot: &[u8]) -> Result<()> {
        if let Some(row) = self.runs.get_mut(&run) {
            row.published = Some(snapshot.to_vec());
        }
        Ok(())
    }

    fn set_attribute(&mut self, run: RunNo, name: &Name, value: Option<&AttributeValue>) -> Result<()> {
        let key = (run, name.clone());
        match value {
            Some(value) => drop(self.attributes.insert(key, value.clone())),
            None => drop(self.attributes.remove(&key)),
        }
        Ok(())
    }

    fn insert_turn(&mut self, run: RunNo, turn: u64, record: &[u8]) -> Result<()> {
        self.turns.insert((run, turn), record.to_vec());
        Ok(())
    }

    fn copy_turns(&mut self, from: RunNo, to: RunNo, count: u64) -> Result<()> {
        let kept = self.turns.range((from, 0)..(from, count));
        let kept: Vec<_> = kept.map(|((_, turn), record)| ((to, *turn), record.clone())).collect();
        self.turns.extend(kept);
        Ok(())
    }

    fn turn(&mut self, run: RunNo, turn: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.turns.get(&(run, turn)).cloned())
    }

    fn insert_task(&mut self, run: RunNo, turn: u64, task: &NewTask) -> Result<TaskNo> {
        let no = TaskNo(self.next());
        let row = TaskRow {
            no,
            run,
            seq: task.seq,
            queue: task.queue.clone(),
            ready: task.ready,
            priority: task.priority,
            turn,
            position: task.position,
            attempt: 1,
            crash_count: 0,
            external: None,
            node: self.node_of(&task.queue).filter(|_| !task.offered),
            failure: None,
            details: None,
        };
        self.tasks.insert(no, row);
        Ok(no)
    }

    fn delete_task(&mut self, task: TaskNo) -> Result<bool> {
        Ok(self.tasks.remove(&task).is_some())
    }

    fn delete_task_of(&mut self, run: RunNo, seq: Seq) -> Result<()> {
        self.tasks.retain(|_, task| (task.run, task.seq) != (run, seq));
        Ok(())
    }

    fn delete_tasks(&mut self, run: RunNo) -> Result<()> {
        self.tasks.retain(|_, task| task.run != run);
        Ok(())
    }

    fn set_task_crash_count(&mut self, task: TaskNo, crash_count: u32) -> Result<()> {
        if let Some(row) = self.tasks.get_mut(&task) {
            row.crash_count = crash_count;
        }
        Ok(())
    }

    fn update_task(&mut self, attempt: &AttemptWrite) -> Result<bool> {
        let Some(row) = self.tasks.get_mut(&attempt.task) else { return Ok(false) };
        if self.writer.as_ref().is_some_and(|writer| row.node != Some(writer.node)) {
            return Ok(false);
        }
        if attempt.is_older_than(row.attempt, row.external) {
            return Ok(true);
        }
        // The node that works at it writes it.
        let node = self.writer.as_ref().map(|writer| writer.node).or(attempt.node);
        (row.attempt, row.ready, row.node) = (attempt.attempt, attempt.ready, node);
        (row.crash_count, row.external) = (attempt.crash_count, attempt.external);
        (row.failure, row.details) = (attempt.failure.clone(), attempt.details.clone());
        Ok(true)
    }

    fn insert_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        self.timers.insert(TimerRow { due, run, kind }, ());
        Ok(())
    }

    fn delete_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        self.timers.remove(&TimerRow { due, run, kind });
        Ok(())
    }

    fn insert_message(&mut self, run: RunNo, message: &NewMessage, taken: Option<u64>) -> Result<Option<MessageNo>> {
        let key = (run, message.key.clone());
        if self.keys.contains_key(&key) {
            return Ok(None);
        }
        let no = MessageNo(self.next());
        let NewMessage { key: name, sent, job } = message.clone();
        self.messages.insert(no, MessageRow { no, run, key: name, sent, job, taken, outcome: None });
        self.keys.insert(key, no);
        Ok(Some(no))
    }

    fn message_job(&mut self, run: RunNo, key: &str) -> Result<Option<Vec<u8>>> {
        let no = self.keys.get(&(run, Name::from(key.to_owned())));
        Ok(no.and_then(|no| self.messages.get(no)).map(|row| row.job.clone()))
    }

    fn message_no(&mut self, run: RunNo, key: &str) -> Result<Option<MessageNo>> {
        Ok(self.keys.get(&(run, Name::from(key.to_owned()))).copied())
    }

    fn is_unseen(&mut self, run: RunNo, message: MessageNo) -> Result<bool> {
        Ok(self.messages.get(&message).is_some_and(|row| row.run == run && row.taken.is_none()))
    }

    fn move_unseen(&mut self, from: RunNo, to: RunNo) -> Result<()> {
        let waiting: Vec<MessageNo> =
            self.messages.values().filter(|row| row.run == from && row.taken.is_none()).map(|row| row.no).collect();
        for no in waiting {
            let Some(row) = self.messages.get_mut(&no) else { continue };
            // The other run may have a message with that key already.
            if self.keys.contains_key(&(to, row.key.clone())) {
                continue;
            }
            self.keys.remove(&(from, row.key.clone()));
            self.keys.insert((to, row.key.clone()), no);
            row.run = to;
        }
        Ok(())
    }

    fn take_message(&mut self, message: MessageNo, turn: u64) -> Result<()> {
        if let Some(row) = self.messages.get_mut(&message) {
            row.taken = Some(turn);
        }
        Ok(())
    }

    fn count_unseen(&mut self, run: RunNo) -> Result<usize> {
        Ok(self.messages.values().filter(|message| message.run == run && message.taken.is_none()).count())
    }

    fn set_outcome(&mut self, run: RunNo, key: &Name, outcome: &[u8]) -> Result<()> {
        if let Some(row) = self.keys.get(&(run, key.clone())).and_then(|no| self.messages.get_mut(no)) {
            row.outcome = Some(outcome.to_vec());
        }
        Ok(())
    }
}
