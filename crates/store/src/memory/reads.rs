//! Reading the store in memory.

use std::cmp::Ordering::{Greater, Less};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use dacapo_client::Order;
use dacapo_core::{AttributeValue, Name, Timestamp};

use super::MemoryStore;
use crate::rows::Rows;
use crate::{
    Belongings, Filter, ListPlace, MessageRow, ReadMessages, ReadRuns, ReadTasks, ReadTimers, ReadTurns, RunNo, RunRow,
    StoreError, TaskNo, TaskRow, TimerRow, is_request, search,
};

type Result<T> = std::result::Result<T, StoreError>;

impl ReadRuns for MemoryStore {
    fn run(&self, no: RunNo) -> Result<Option<RunRow>> {
        Rows::run(&mut *self.tables(), no)
    }

    fn find(&self, workflow_id: &str, run_id: Option<&str>) -> Result<Option<RunRow>> {
        let tables = self.tables();
        let runs = tables.runs.values().filter(|row| row.workflow_id == *workflow_id);
        let runs = runs.filter(|row| run_id.is_none_or(|run_id| row.run_id == *run_id));
        Ok(runs.max_by_key(|row| (row.status.is_open(), row.no)).cloned())
    }

    fn list(&self, filter: &Filter, after: Option<ListPlace>, limit: usize) -> Result<Vec<RunRow>> {
        let tables = self.tables();
        let conditions = search::conditions(filter);
        let order = search::order(filter, &conditions);
        let key = |row: &RunRow| match order {
            Order::Newest => Some((Timestamp::default(), row.no)),
            Order::StartTime { .. } => Some((row.started, row.no)),
            Order::CloseTime { .. } => Some((row.closed?, row.no)),
        };
        let ascending =
            matches!(order, Order::StartTime { descending: false } | Order::CloseTime { descending: false });
        let is_after = |key: (Timestamp, RunNo)| {
            after.is_none_or(|after| key.cmp(&(after.time, after.no)) == if ascending { Greater } else { Less })
        };
        let rows = tables.matching(&conditions).filter_map(|row| Some((key(row)?, row)));
        let mut rows: Vec<_> = rows.filter(|(key, _)| is_after(*key)).collect();
        rows.sort_by_key(|(key, _)| *key);
        if !ascending {
            rows.reverse();
        }
        Ok(rows.into_iter().take(limit).map(|(_, row)| row.clone()).collect())
    }

    fn oldest(&self, filter: &Filter, after: Option<RunNo>, limit: usize) -> Result<Vec<RunRow>> {
        let tables = self.tables();
        let conditions = search::conditions(filter);
        let rows = tables.matching(&conditions).filter(|row| after.is_none_or(|after| row.no > after));
        Ok(rows.take(limit).cloned().collect())
    }

    fn numbers(&self, before: Option<RunNo>, limit: usize) -> Result<Vec<RunNo>> {
        let tables = self.tables();
        let numbers = tables.runs.keys().rev().filter(|no| before.is_none_or(|before| **no < before));
        Ok(numbers.take(limit).copied().collect())
    }

    fn belongings(&self, run: RunNo) -> Result<Belongings> {
        let tables = self.tables();
        let messages = tables.messages.values().filter(|row| row.run == run);
        Ok(Belongings {
            request: tables.requests.iter().find(|(_, of)| **of == run).map(|(request, _)| request.clone()),
            attributes: tables.attributes_of(run),
            messages: messages.cloned().collect(),
        })
    }

    fn attributes(&self, run: RunNo) -> Result<Vec<(Name, AttributeValue)>> {
        Ok(self.tables().attributes_of(run))
    }

    fn runs_with_crash_count(&self) -> Result<Vec<(u32, RunNo)>> {
        let tables = self.tables();
        let counted = tables.runs.values().filter(|row| row.crash_count > 0 && row.status.is_open());
        let mut counted: Vec<_> = counted.map(|row| (row.crash_count, row.no)).collect();
        counted.sort();
        Ok(counted)
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

    fn count(&self, filter: &Filter, most: u64) -> Result<u64> {
        Ok(self.list(filter, None, usize::try_from(most).unwrap_or(usize::MAX))?.len() as u64)
    }

    fn workflows(&self) -> Result<Vec<Name>> {
        let workflows: BTreeSet<Name> = self.tables().runs.values().map(|row| row.workflow.clone()).collect();
        Ok(workflows.into_iter().collect())
    }
}

impl ReadTurns for MemoryStore {
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

impl ReadMessages for MemoryStore {
    fn unseen(&self, run: RunNo) -> Result<Vec<MessageRow>> {
        let tables = self.tables();
        Ok(tables.messages.values().filter(|message| message.run == run && message.taken.is_none()).cloned().collect())
    }

    fn count_unseen(&self, run: RunNo) -> Result<usize> {
        let tables = self.tables();
        Ok(tables.messages.values().filter(|message| message.run == run && message.taken.is_none()).count())
    }

    fn message(&self, run: RunNo, key: &str) -> Result<Option<MessageRow>> {
        let tables = self.tables();
        let no = tables.keys.get(&(run, Name::from(key.to_owned())));
        Ok(no.and_then(|no| tables.messages.get(no)).cloned())
    }

    fn asked(&self, chain: &str, request: &str) -> Result<Vec<RunNo>> {
        let tables = self.tables();
        let of_chain = |run: &RunNo| tables.runs.get(run).is_some_and(|row| row.first_run_id == chain);
        let messages = tables.messages.values().filter(|message| is_request(&message.key) && message.key == request);
        let mut runs: Vec<RunNo> = messages.map(|message| message.run).filter(of_chain).collect();
        runs.sort();
        Ok(runs)
    }

    fn with_unseen_messages(&self, limit: usize) -> Result<Vec<RunNo>> {
        let tables = self.tables();
        let open = |run: &RunNo| tables.runs.get(run).is_some_and(|row| row.status.is_open());
        let mut runs: Vec<RunNo> = tables
            .messages
            .values()
            .filter(|message| message.taken.is_none())
            .map(|message| message.run)
            .filter(open)
            .collect();
        runs.sort();
        runs.dedup();
        runs.truncate(limit);
        Ok(runs)
    }
}

impl ReadTasks for MemoryStore {
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

impl ReadTimers for MemoryStore {
    fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<TimerRow>> {
        Ok(self.tables().timers.keys().take_while(|timer| timer.due <= until).take(limit).copied().collect())
    }

    fn next_due(&self) -> Result<Option<Timestamp>> {
        Ok(self.tables().timers.keys().next().map(|timer| timer.due))
    }
}
