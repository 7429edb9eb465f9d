//! The store that forgets: everything in memory, for tests and for work that need not survive.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use dacapo_core::{Name, ParentClose, Timestamp};
use parking_lot::{Mutex, MutexGuard};

use crate::rows::{Rows, SWEEP_BYTES};
use crate::{
    AttemptWrite, Belongings, Doing, Epoch, Mail, MailNo, MailRow, NewMail, NewRun, NewTask, NodeNo, RunFilter, RunNo,
    RunRow, Running, Runs, Slot, Status, StoreError, Stuck, TaskNo, TaskRow, Tasks, TimerKind, TimerRow, Timers, Turns,
    Upkeep, Write, Writes, apply, is_request,
};

type Result<T> = std::result::Result<T, StoreError>;

/// A store in memory.
#[derive(Default)]
pub struct MemoryStore(Mutex<Tables>);

#[derive(Default)]
struct Tables {
    runs: BTreeMap<RunNo, RunRow>,
    requests: BTreeMap<Name, RunNo>,
    open: BTreeMap<Name, RunNo>,
    turns: BTreeMap<(RunNo, u64), Vec<u8>>,
    tasks: BTreeMap<TaskNo, TaskRow>,
    timers: BTreeMap<TimerRow, ()>,
    mail: BTreeMap<MailNo, MailRow>,
    keys: BTreeMap<(RunNo, Name), MailNo>,
    attributes: BTreeMap<(RunNo, Name), Vec<u8>>,
    /// Deleted runs whose turns and mail are to go.
    garbage: BTreeSet<RunNo>,
    last: i64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock()
    }
}

impl Writes for MemoryStore {
    fn submit(&self, write: Write, done: crate::Done) {
        let written = apply(&mut *self.tables(), &write);
        done(written);
    }
}

impl Tables {
    fn next(&mut self) -> i64 {
        self.last += 1;
        self.last
    }
}

impl Rows for Tables {
    fn insert_run(&mut self, new: &NewRun, turns: u64, owner: Option<NodeNo>, epoch: Epoch) -> Result<RunNo> {
        let no = RunNo(self.next());
        let first_run_id = if new.first_run_id.is_empty() { new.run_id.clone() } else { new.first_run_id.clone() };
        let row = RunRow {
            no,
            run_id: new.run_id.clone(),
            workflow_id: new.workflow_id.clone(),
            workflow: new.workflow.clone(),
            queue: new.queue.clone(),
            status: Status::Open,
            started: new.started,
            closed: None,
            turns,
            owner,
            epoch,
            pins: new.pins.clone(),
            parent: new.parent.clone(),
            first_run_id,
            stuck: None,
            strikes: 0,
            memo: new.memo.clone(),
            published: None,
            result: None,
        };
        self.runs.insert(no, row);
        self.open.insert(new.workflow_id.clone(), no);
        if let Some(request) = &new.request {
            self.requests.insert(request.clone(), no);
        }
        Ok(no)
    }

    fn insert_closed(&mut self, run: &RunRow, request: Option<&Name>, no: Option<RunNo>) -> Result<RunNo> {
        let no = no.unwrap_or_else(|| RunNo(self.next()));
        if let Some(request) = request {
            self.requests.insert(request.clone(), no);
        }
        let row = RunRow { no, owner: None, epoch: Epoch::default(), parent: None, strikes: 0, ..run.clone() };
        self.runs.insert(no, row);
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

    fn advance(&mut self, run: RunNo, turn: u64, epoch: Epoch, strikes: u32) -> Result<bool> {
        let Some(row) = self.runs.get_mut(&run) else { return Ok(false) };
        let passes = row.status.is_open() && row.epoch == epoch && row.turns == turn;
        if passes {
            row.turns += 1;
            (row.stuck, row.strikes) = (None, strikes);
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
            let mail = self.keys.range((run, Name::default())..).next().filter(|((of, _), _)| *of == run);
            match (turns, mail.map(|(key, no)| (key.clone(), *no))) {
                _ if rows >= most || bytes >= SWEEP_BYTES => return Ok(true),
                (Some(turn), _) => bytes += self.turns.remove(&turn).map_or(0, |record| record.len()),
                (None, Some((key, no))) => {
                    self.keys.remove(&key);
                    bytes += self.mail.remove(&no).map_or(0, |row| row.job.len());
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
            (link.run, link.seq) = (parent, dacapo_core::Seq(u64::MAX));
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

    fn strike_run(&mut self, run: RunNo, strikes: u32) -> Result<()> {
        if let Some(row) = self.runs.get_mut(&run) {
            row.strikes = strikes;
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

    fn set_attribute(&mut self, run: RunNo, name: &Name, value: Option<&[u8]>) -> Result<()> {
        let key = (run, name.clone());
        match value {
            Some(value) => drop(self.attributes.insert(key, value.to_vec())),
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
            strikes: 0,
            outside: None,
            holder: None,
            failure: None,
            details: None,
        };
        self.tasks.insert(no, row);
        Ok(no)
    }

    fn delete_task(&mut self, task: TaskNo) -> Result<bool> {
        Ok(self.tasks.remove(&task).is_some())
    }

    fn delete_task_of(&mut self, run: RunNo, seq: dacapo_core::Seq) -> Result<()> {
        self.tasks.retain(|_, task| (task.run, task.seq) != (run, seq));
        Ok(())
    }

    fn delete_tasks(&mut self, run: RunNo) -> Result<()> {
        self.tasks.retain(|_, task| task.run != run);
        Ok(())
    }

    fn strike_task(&mut self, task: TaskNo, strikes: u32) -> Result<()> {
        if let Some(row) = self.tasks.get_mut(&task) {
            row.strikes = strikes;
        }
        Ok(())
    }

    fn update_task(&mut self, attempt: &AttemptWrite) -> Result<bool> {
        let Some(row) = self.tasks.get_mut(&attempt.task) else { return Ok(false) };
        (row.attempt, row.ready, row.holder) = (attempt.attempt, attempt.ready, attempt.holder);
        (row.strikes, row.outside) = (attempt.strikes, attempt.outside);
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

    fn insert_mail(&mut self, run: RunNo, mail: &NewMail, taken: Option<u64>) -> Result<Option<MailNo>> {
        let key = (run, mail.key.clone());
        if self.keys.contains_key(&key) {
            return Ok(None);
        }
        let no = MailNo(self.next());
        let NewMail { key: name, sent, job } = mail.clone();
        self.mail.insert(no, MailRow { no, run, key: name, sent, job, taken, outcome: None });
        self.keys.insert(key, no);
        Ok(Some(no))
    }

    fn mail_job(&mut self, run: RunNo, key: &str) -> Result<Option<Vec<u8>>> {
        let no = self.keys.get(&(run, Name::from(key.to_owned())));
        Ok(no.and_then(|no| self.mail.get(no)).map(|row| row.job.clone()))
    }

    fn mail_of_key(&mut self, run: RunNo, key: &str) -> Result<Option<MailNo>> {
        Ok(self.keys.get(&(run, Name::from(key.to_owned()))).copied())
    }

    fn is_unseen(&mut self, run: RunNo, mail: MailNo) -> Result<bool> {
        Ok(self.mail.get(&mail).is_some_and(|row| row.run == run && row.taken.is_none()))
    }

    fn move_unseen(&mut self, from: RunNo, to: RunNo) -> Result<()> {
        let waiting: Vec<MailNo> =
            self.mail.values().filter(|row| row.run == from && row.taken.is_none()).map(|row| row.no).collect();
        for no in waiting {
            let Some(row) = self.mail.get_mut(&no) else { continue };
            // Mail of a key that the other run has is there already.
            if self.keys.contains_key(&(to, row.key.clone())) {
                continue;
            }
            self.keys.remove(&(from, row.key.clone()));
            self.keys.insert((to, row.key.clone()), no);
            row.run = to;
        }
        Ok(())
    }

    fn take_mail(&mut self, mail: MailNo, turn: u64) -> Result<()> {
        if let Some(row) = self.mail.get_mut(&mail) {
            row.taken = Some(turn);
        }
        Ok(())
    }

    fn count_unseen(&mut self, run: RunNo) -> Result<usize> {
        Ok(self.mail.values().filter(|mail| mail.run == run && mail.taken.is_none()).count())
    }

    fn set_outcome(&mut self, run: RunNo, key: &Name, outcome: &[u8]) -> Result<()> {
        if let Some(row) = self.keys.get(&(run, key.clone())).and_then(|no| self.mail.get_mut(no)) {
            row.outcome = Some(outcome.to_vec());
        }
        Ok(())
    }
}

impl Runs for MemoryStore {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>> {
        Rows::run(&mut *self.tables(), no)
    }

    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>> {
        let tables = self.tables();
        let runs = tables.runs.values().filter(|row| row.workflow_id == *workflow_id);
        let runs = runs.filter(|row| run_id.is_none_or(|run_id| row.run_id == *run_id));
        Ok(runs.max_by_key(|row| (row.status.is_open(), row.no)).cloned())
    }

    fn list(&self, filter: &RunFilter, before: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        let tables = self.tables();
        let rows = tables.runs.values().rev().filter(|row| before.is_none_or(|before| row.no < before));
        Ok(rows.filter(|row| filter.matches(row)).take(limit).cloned().collect())
    }

    fn oldest(&self, filter: &RunFilter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        let tables = self.tables();
        let rows = tables.runs.values().filter(|row| after.is_none_or(|after| row.no > after));
        Ok(rows.filter(|row| filter.matches(row)).take(limit).cloned().collect())
    }

    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>> {
        let tables = self.tables();
        let numbers = tables.runs.keys().rev().filter(|no| before.is_none_or(|before| **no < before));
        Ok(numbers.take(limit).copied().collect())
    }

    fn belongings(&self, run: RunNo) -> Result<Belongings> {
        let tables = self.tables();
        let attributes = tables.attributes.iter().filter(|((of, _), _)| *of == run);
        let mail = tables.mail.values().filter(|row| row.run == run);
        Ok(Belongings {
            request: tables.requests.iter().find(|(_, of)| **of == run).map(|(request, _)| request.clone()),
            attributes: attributes.map(|((_, name), value)| (name.clone(), value.clone())).collect(),
            mail: mail.cloned().collect(),
        })
    }

    fn struck(&self) -> Result<Vec<(u32, RunNo)>> {
        let tables = self.tables();
        let struck = tables.runs.values().filter(|row| row.strikes > 0 && row.status.is_open());
        let mut struck: Vec<_> = struck.map(|row| (row.strikes, row.no)).collect();
        struck.sort();
        Ok(struck)
    }

    fn closed_before(&self, moment: Timestamp, limit: usize) -> Result<Vec<RunNo>> {
        let tables = self.tables();
        let closed = tables.runs.values().filter_map(|row| Some((row.closed?, row.no)));
        let mut closed: Vec<_> = closed.filter(|(at, _)| *at < moment).collect();
        closed.sort();
        Ok(closed.into_iter().map(|(_, no)| no).take(limit).collect())
    }

    fn has_remains(&self) -> Result<bool> {
        Ok(!self.tables().garbage.is_empty())
    }

    fn count(&self, filter: &RunFilter) -> Result<u64> {
        Ok(self.tables().runs.values().filter(|row| filter.matches(row)).count() as u64)
    }
}

/// Nothing survives the process, so there is nobody to leave a note for.
impl Running for MemoryStore {
    fn began(&self, _: Doing) -> Option<Slot> {
        None
    }

    fn ended(&self, _: Slot) {}

    fn left(&self) -> Vec<Doing> {
        Vec::new()
    }

    fn forget_left(&self) {}
}

impl Upkeep for MemoryStore {
    fn back_up(&self, _: &Path) -> Result<()> {
        Err(StoreError::Unsupported("a store in memory has no backup: export its histories".to_owned()))
    }

    fn flaws(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

impl Turns for MemoryStore {
    fn turns(&self, run: RunNo, from: u64, show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>) -> Result<()> {
        let records: Vec<(u64, Vec<u8>)> = {
            let tables = self.tables();
            let range = tables.turns.range((run, from)..=(run, u64::MAX));
            range.map(|((_, turn), record)| (*turn, record.clone())).collect()
        };
        for (turn, record) in records {
            if show(turn, &record).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Mail for MemoryStore {
    fn unseen(&self, run: RunNo) -> Result<Vec<MailRow>> {
        let tables = self.tables();
        Ok(tables.mail.values().filter(|mail| mail.run == run && mail.taken.is_none()).cloned().collect())
    }

    fn mail(&self, run: RunNo, key: &str) -> Result<Option<MailRow>> {
        let tables = self.tables();
        let no = tables.keys.get(&(run, Name::from(key.to_owned())));
        Ok(no.and_then(|no| tables.mail.get(no)).cloned())
    }

    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>> {
        let tables = self.tables();
        let of_chain = |run: &RunNo| tables.runs.get(run).is_some_and(|row| row.first_run_id == chain);
        let mail = tables.mail.values().filter(|mail| is_request(&mail.key) && mail.key == request);
        let mut runs: Vec<RunNo> = mail.map(|mail| mail.run).filter(of_chain).collect();
        runs.sort();
        Ok(runs)
    }

    fn with_unseen_mail(&self, limit: usize) -> Result<Vec<RunNo>> {
        let tables = self.tables();
        let open = |run: &RunNo| tables.runs.get(run).is_some_and(|row| row.status.is_open());
        let mut runs: Vec<RunNo> =
            tables.mail.values().filter(|mail| mail.taken.is_none()).map(|mail| mail.run).filter(open).collect();
        runs.sort();
        runs.dedup();
        runs.truncate(limit);
        Ok(runs)
    }
}

impl Tasks for MemoryStore {
    fn tasks(&self, queues: &[Name], above: i64, limit: usize) -> Result<Vec<TaskRow>> {
        let tables = self.tables();
        let rows = tables.tasks.values().filter(|task| task.no.0 > above && queues.contains(&task.queue));
        Ok(rows.take(limit).cloned().collect())
    }

    fn task(&self, no: TaskNo) -> Result<Option<TaskRow>> {
        Ok(self.tables().tasks.get(&no).cloned())
    }

    fn tasks_of(&self, run: RunNo) -> Result<Vec<TaskRow>> {
        Ok(self.tables().tasks.values().filter(|task| task.run == run).cloned().collect())
    }
}

impl Timers for MemoryStore {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>> {
        Ok(self.tables().timers.keys().take_while(|timer| timer.due <= until).take(limit).copied().collect())
    }

    fn next_due(&self) -> Result<Option<Timestamp>> {
        Ok(self.tables().timers.keys().next().map(|timer| timer.due))
    }
}

#[cfg(test)]
mod tests {
    crate::conformance_tests!(crate::MemoryStore::new());
}
