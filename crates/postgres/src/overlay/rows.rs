//! The rows of a store over the facts of a group: what `apply` reads and changes.

use dacapo_core::{AttributeValue, Name, ParentClose, Seq, Timestamp};
use dacapo_store::{
    AttemptWrite, Epoch, MessageNo, MessageRow, NewMessage, NewRun, NewTask, NodeNo, Rows, RunNo, RunRow, Status,
    StoreError, Stuck, TaskNo, TimerKind, TimerRow, is_request,
};

use super::{Overlay, incomplete};
use crate::changes::{Extent, NewRow};

type Result<T> = std::result::Result<T, StoreError>;

impl Rows for Overlay<'_> {
    fn is_shared(&self) -> bool {
        true
    }

    fn insert_run(&mut self, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Result<RunNo> {
        let no = self.run_number(&new.queue)?;
        let row = RunRow::started(no, new, turns, owner, epoch);
        self.add_run(row, new.request.clone());
        Ok(no)
    }

    fn insert_closed(&mut self, run: &RunRow, request: Option<&Name>, no: Option<RunNo>) -> Result<RunNo> {
        let no = match no {
            Some(no) => no,
            None => self.run_number(&run.queue)?,
        };
        self.add_run(run.imported(no), request.cloned());
        Ok(no)
    }

    fn last_no(&mut self, from: RunNo, until: RunNo) -> Result<Option<RunNo>> {
        let range = (from, until);
        if !self.facts.asked.ranges.contains(&range) {
            self.missing.ranges.insert(range);
            return incomplete();
        }
        let added = self.changes.runs.range(from..until).next_back().map(|(no, _)| *no);
        Ok(added.max(self.facts.ranges.get(&range).copied()))
    }

    fn run_of_id(&mut self, run_id: &str) -> Result<Option<RunNo>> {
        if let Some(no) = self.run_ids.get(run_id).or_else(|| self.facts.run_ids.get(run_id)) {
            return Ok(Some(*no));
        }
        if self.facts.asked.run_ids.contains(run_id) {
            return Ok(None);
        }
        self.missing.run_ids.insert(Name::from(run_id.to_owned()));
        incomplete()
    }

    fn run(&mut self, no: RunNo) -> Result<Option<RunRow>> {
        if self.facts.is_predicted {
            self.missing.runs.insert(no);
            return incomplete();
        }
        Ok(self.row(no)?.cloned())
    }

    fn open_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>> {
        if let Some(open) = self.open.get(workflow_id) {
            return Ok(*open);
        }
        if self.facts.asked.workflow_ids.contains(workflow_id) {
            return Ok(self.facts.open.get(workflow_id).copied());
        }
        self.missing.workflow_ids.insert(Name::from(workflow_id.to_owned()));
        incomplete()
    }

    fn last_run(&mut self, workflow_id: &str) -> Result<Option<RunNo>> {
        if !self.facts.asked.last_runs.contains(workflow_id) {
            self.missing.last_runs.insert(Name::from(workflow_id.to_owned()));
            return incomplete();
        }
        let added = self.last.get(workflow_id).copied();
        Ok(added.max(self.facts.last.get(workflow_id).copied()))
    }

    fn requested_run(&mut self, request: &str) -> Result<Option<RunNo>> {
        if let Some(no) = self.requests.get(request).or_else(|| self.facts.requests.get(request)) {
            return Ok(Some(*no));
        }
        if self.facts.asked.requests.contains(request) {
            return Ok(None);
        }
        self.missing.requests.insert(Name::from(request.to_owned()));
        incomplete()
    }

    fn open_children(&mut self, run: RunNo) -> Result<Vec<(RunNo, ParentClose)>> {
        if !self.is_new(run) && !self.facts.asked.closing.contains(&run) {
            self.missing.closing.insert(run);
            return incomplete();
        }
        let stored = self.facts.children.get(&run).into_iter().flatten().map(|(child, _)| *child);
        let added = self.children.get(&run).into_iter().flatten().copied();
        let mut candidates: Vec<RunNo> = stored.chain(added).collect();
        candidates.sort();
        candidates.dedup();
        let mut children = Vec::new();
        for child in candidates {
            let Some(row) = self.row(child)? else { continue };
            if let Some(parent) = row.parent.as_ref().filter(|parent| parent.run == run && row.status.is_open()) {
                children.push((child, parent.close));
            }
        }
        Ok(children)
    }

    fn hand_over(&mut self, child: RunNo, parent: RunNo) -> Result<()> {
        self.children.entry(parent).or_default().push(child);
        self.change(child, Extent::Any, |row| {
            if let Some(link) = &mut row.parent {
                (link.run, link.seq) = (parent, Seq(u64::MAX));
            }
        })
    }

    fn set_parent(&mut self, run: RunNo, parent: RunNo) -> Result<()> {
        self.children.entry(parent).or_default().push(run);
        self.change(run, Extent::Any, |row| {
            if let Some(link) = &mut row.parent {
                link.run = parent;
            }
        })
    }

    fn advance(&mut self, run: RunNo, turn: u64, epoch: Epoch, crash_count: u32) -> Result<bool> {
        let Some(row) = self.row(run)? else { return Ok(false) };
        if !row.status.is_open() || row.epoch != epoch || row.turns != turn {
            return Ok(false);
        }
        self.change(run, Extent::Turn, |row| {
            row.turns += 1;
            (row.stuck, row.crash_count) = (None, crash_count);
        })?;
        Ok(true)
    }

    fn own(&mut self, run: RunNo, seen: Epoch, node: NodeNo, epoch: Epoch) -> Result<bool> {
        let Some(row) = self.row(run)? else { return Ok(false) };
        if !row.status.is_open() || row.epoch != seen {
            return Ok(false);
        }
        self.change(run, Extent::Any, |row| (row.owner, row.epoch) = (Some(node), epoch))?;
        Ok(true)
    }

    fn close(&mut self, run: RunNo, status: Status, at: Timestamp, result: &[u8]) -> Result<()> {
        let Some(row) = self.row(run)? else { return Ok(()) };
        let workflow_id = row.workflow_id.clone();
        self.open.insert(workflow_id, None);
        self.change(run, Extent::Any, |row| {
            (row.status, row.closed, row.result) = (status, Some(at), Some(result.to_vec()));
            (row.owner, row.stuck) = (None, None);
        })
    }

    fn set_stuck(&mut self, run: RunNo, stuck: Option<&Stuck>) -> Result<()> {
        self.change(run, Extent::Any, |row| row.stuck = stuck.cloned())
    }

    fn set_run_crash_count(&mut self, run: RunNo, crash_count: u32) -> Result<()> {
        self.change(run, Extent::Any, |row| row.crash_count = crash_count)
    }

    fn delete_run(&mut self, run: RunNo) -> Result<()> {
        self.changes.deleted_runs.insert(run);
        Ok(())
    }

    fn sweep(&mut self, most: usize) -> Result<bool> {
        match self.facts.swept {
            Some(more) => Ok(more),
            None => {
                self.missing.sweep = Some(most);
                incomplete()
            }
        }
    }

    fn set_memo(&mut self, run: RunNo, memo: &[u8]) -> Result<()> {
        self.change(run, Extent::Any, |row| row.memo = memo.to_vec())?;
        self.mark(run, |change| change.has_memo = true);
        Ok(())
    }

    fn set_published(&mut self, run: RunNo, snapshot: &[u8]) -> Result<()> {
        self.change(run, Extent::Any, |row| row.published = Some(snapshot.to_vec()))?;
        self.mark(run, |change| change.has_published = true);
        Ok(())
    }

    fn set_attribute(&mut self, run: RunNo, name: &Name, value: Option<&AttributeValue>) -> Result<()> {
        let words: &[Name] = match value {
            Some(AttributeValue::Keyword(word)) => std::slice::from_ref(word),
            Some(AttributeValue::Keywords(words)) => words,
            _ => &[],
        };
        if words.iter().any(|word| word.contains('\0')) {
            let name = name.as_str();
            return Err(StoreError::Unsupported(format!(
                "search attribute {name:?} has a NUL character, which PostgreSQL cannot keep in text: remove it"
            )));
        }
        self.changes.attributes.insert((run, name.clone()), value.cloned());
        Ok(())
    }

    fn insert_turn(&mut self, run: RunNo, turn: u64, record: &[u8]) -> Result<()> {
        self.changes.turns.push((run, turn, record.to_vec()));
        Ok(())
    }

    fn copy_turns(&mut self, from: RunNo, to: RunNo, count: u64) -> Result<()> {
        self.changes.copies.push((from, to, count));
        Ok(())
    }

    fn turn(&mut self, run: RunNo, turn: u64) -> Result<Option<Vec<u8>>> {
        let added = self.changes.turns.iter().find(|(of, number, _)| (*of, *number) == (run, turn));
        if let Some((_, _, record)) = added {
            return Ok(Some(record.clone()));
        }
        if self.is_new(run) || self.facts.asked.turns.contains(&(run, turn)) {
            return Ok(self.facts.turns.get(&(run, turn)).cloned());
        }
        self.missing.turns.insert((run, turn));
        incomplete()
    }

    fn insert_task(&mut self, run: RunNo, turn: u64, task: &NewTask) -> Result<TaskNo> {
        Ok(self.add_task(run, turn, task))
    }

    fn delete_task(&mut self, task: TaskNo) -> Result<bool> {
        if self.changes.new_tasks.remove(&task).is_some() {
            return Ok(true);
        }
        let is_there = self.task(task)?.is_some();
        self.changes.ended_tasks.insert(task);
        Ok(is_there)
    }

    fn remove_task(&mut self, task: TaskNo) -> Result<()> {
        if self.changes.new_tasks.remove(&task).is_none() {
            self.changes.ended_tasks.insert(task);
        }
        Ok(())
    }

    fn delete_task_of(&mut self, run: RunNo, seq: Seq) -> Result<()> {
        self.changes.new_tasks.retain(|_, task| (task.run, task.seq) != (run, seq));
        if !self.is_new(run) {
            self.changes.ended_activities.insert((run, seq));
        }
        Ok(())
    }

    fn delete_tasks(&mut self, run: RunNo) -> Result<()> {
        self.changes.new_tasks.retain(|_, task| task.run != run);
        if !self.is_new(run) {
            self.changes.ended_runs.insert(run);
        }
        Ok(())
    }

    fn set_task_crash_count(&mut self, task: TaskNo, crash_count: u32) -> Result<()> {
        if let Some(row) = self.changes.new_tasks.get_mut(&task) {
            row.crash_count = crash_count;
        } else if let Some(attempt) = self.changes.attempts.get_mut(&task) {
            attempt.crash_count = crash_count;
        } else {
            self.changes.crash_counts.insert(task, crash_count);
        }
        Ok(())
    }

    fn update_task(&mut self, attempt: &AttemptWrite) -> Result<bool> {
        self.change_task(attempt)
    }

    fn insert_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        self.changes.new_timers.insert(TimerRow { due, run, kind });
        Ok(())
    }

    fn delete_timer(&mut self, run: RunNo, due: Timestamp, kind: TimerKind) -> Result<()> {
        let timer = TimerRow { due, run, kind };
        self.changes.new_timers.remove(&timer);
        self.changes.ended_timers.insert(timer);
        Ok(())
    }

    fn insert_message(&mut self, run: RunNo, message: &NewMessage, taken: Option<u64>) -> Result<Option<MessageNo>> {
        let NewMessage { key, sent, job } = message.clone();
        if self.keys.contains_key(&(run, key.clone())) || self.stored(run, &key)?.is_some() {
            return Ok(None);
        }
        let chain = match is_request(&key) {
            true => self.row(run)?.map(|row| row.first_run_id.clone()),
            false => None,
        };
        let no = MessageNo(self.number()?);
        self.keys.insert((run, key.clone()), no);
        if taken.is_none() {
            *self.unseen.entry(run).or_default() += 1;
        }
        let row = MessageRow { no, run, key, sent, job, taken, outcome: None };
        self.changes.new_messages.insert(no, NewRow { row, chain });
        Ok(Some(no))
    }

    fn message_job(&mut self, run: RunNo, key: &str) -> Result<Option<Vec<u8>>> {
        let place = (run, Name::from(key.to_owned()));
        if let Some(new) = self.keys.get(&place).and_then(|no| self.changes.new_messages.get(no)) {
            return Ok(Some(new.row.job.clone()));
        }
        if self.is_new(run) || self.facts.asked.jobs.contains(&place) {
            return Ok(self.facts.jobs.get(&place).cloned());
        }
        self.missing.jobs.insert(place);
        incomplete()
    }

    fn message_no(&mut self, run: RunNo, key: &str) -> Result<Option<MessageNo>> {
        let key = Name::from(key.to_owned());
        if let Some(no) = self.keys.get(&(run, key.clone())) {
            return Ok(Some(*no));
        }
        Ok(self.stored(run, &key)?.map(|fact| fact.no))
    }

    fn is_unseen(&mut self, run: RunNo, message: MessageNo) -> Result<bool> {
        if let Some(new) = self.changes.new_messages.get(&message) {
            return Ok(new.row.run == run && new.row.taken.is_none());
        }
        let is_taken_here = self.changes.taken.contains_key(&message);
        let fact = self.message(message)?;
        Ok(!is_taken_here && fact.is_some_and(|fact| fact.run == run && fact.taken.is_none()))
    }

    fn move_unseen(&mut self, from: RunNo, to: RunNo) -> Result<()> {
        self.changes.moved.push((from, to));
        Ok(())
    }

    fn take_message(&mut self, message: MessageNo, turn: u64) -> Result<()> {
        if let Some(new) = self.changes.new_messages.get_mut(&message) {
            if new.row.taken.replace(turn).is_none() {
                *self.unseen.entry(new.row.run).or_default() -= 1;
            }
            return Ok(());
        }
        let Some(fact) = self.message(message)? else { return Ok(()) };
        if fact.taken.is_none() && self.seen.insert(message) {
            *self.unseen.entry(fact.run).or_default() -= 1;
        }
        self.changes.taken.insert(message, turn);
        Ok(())
    }

    fn count_unseen(&mut self, run: RunNo) -> Result<usize> {
        let stored = match self.facts.unseen.get(&run) {
            Some(count) => *count,
            None if self.is_new(run) => 0,
            None => {
                self.missing.unseen.insert(run);
                return incomplete();
            }
        };
        let changed = self.unseen.get(&run).copied().unwrap_or_default();
        Ok(stored.saturating_add_signed(changed))
    }

    fn set_outcome(&mut self, run: RunNo, key: &Name, outcome: &[u8]) -> Result<()> {
        let place = (run, key.clone());
        match self.keys.get(&place).and_then(|no| self.changes.new_messages.get_mut(no)) {
            Some(new) => new.row.outcome = Some(outcome.to_vec()),
            None => drop(self.changes.outcomes.insert(place, outcome.to_vec())),
        }
        Ok(())
    }
}
