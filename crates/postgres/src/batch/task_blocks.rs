//! The numbers that new tasks get. A node draws blocks of them, so that most groups need not ask for any.

use std::collections::VecDeque;
use std::ops::Range;

use dacapo_store::{StoreError, Write};
use tokio_postgres::Row;

use crate::overlay::TaskNumbers;
use crate::row::get;
use crate::trip::{Trip, values};

/// The numbers of tasks that a node draws at once.
const TASK_BLOCK: i64 = 4096;
const DRAW_TASKS: &str = "SELECT nextval('task_blocks') FROM generate_series(1, $1::bigint)";

/// Numbers of tasks that this node has drawn and not used, in rising order.
#[derive(Default)]
pub(super) struct TaskBlocks(VecDeque<Range<i64>>);

impl TaskNumbers for TaskBlocks {
    fn next(&mut self) -> Option<i64> {
        let number = self.0.front_mut()?.next();
        if self.0.front().is_some_and(Range::is_empty) {
            self.0.pop_front();
        }
        number
    }
}

impl TaskBlocks {
    /// Returns how many numbers are left.
    fn left(&self) -> usize {
        self.0.iter().map(|block| (block.end - block.start) as usize).sum()
    }

    /// Adds the blocks of these numbers, which are higher than all before.
    pub(super) fn add(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        for row in rows {
            let block: i64 = get(row, 0)?;
            self.0.push_back(block * TASK_BLOCK..(block + 1) * TASK_BLOCK);
        }
        Ok(())
    }

    /// Adds a statement that draws numbers for tasks if they may not suffice. Returns its place.
    pub(super) fn draw(&self, writes: &[Write], trip: &mut Trip<'_>) -> Option<usize> {
        let wanted: usize = writes.iter().map(new_tasks).sum();
        let lacks = wanted.saturating_sub(self.left());
        (lacks > 0).then(|| trip.step(DRAW_TASKS, values![lacks.div_ceil(TASK_BLOCK as usize) as i64]))
    }
}

fn new_tasks(write: &Write) -> usize {
    match write {
        Write::Turn(turn) => turn.tasks.len(),
        Write::Reset(reset) => reset.tasks.len(),
        _ => 0,
    }
}
