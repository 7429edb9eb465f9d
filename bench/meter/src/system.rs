//! A system that can be measured.

use anyhow::Result;

/// What a workflow does with the payload it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Hands it to so many activities, one after another.
    Chain(u32),
    /// Hands it to so many activities at once, and waits for all.
    Fan(u32),
}

/// A system that runs workflows durably. Its one activity answers with what it is given, and calls [`crate::ticks::tick`].
pub trait System: Send + Sync + 'static {
    /// Its name in the figures.
    fn name(&self) -> &'static str;

    /// Starts a workflow, waits until it is done, and gives its result: what the last activity gave.
    fn run(&self, shape: Shape, id: String, payload: String) -> impl Future<Output = Result<String>> + Send;

    /// Starts a workflow that sleeps for an hour. Done when the start is durable, as far as the system flushes at all.
    fn start_sleeper(&self, id: String, payload: String) -> impl Future<Output = Result<()>> + Send;
}

/// Two hundred bytes, unlike those of another number.
pub fn payload(number: u64) -> String {
    format!("{number:020}").repeat(10)
}
