//! Looking at a run by its handle.

use dacapo_client::{Cursor, Description, HistoryPage, RunHistory};
use dacapo_core::{Inspection, Transcript};
use serde::de::DeserializeOwned;

use crate::client::{Error, Handle, Result};

/// How many events of a history are asked for at a time.
const EVENTS: usize = 10_000;

impl<O> Handle<O> {
    /// Describes the run: its status, its pending activities with attempt and last failure, and why it is stuck, if it is.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// let order = run.describe().await?;
    /// println!("{} is {} since {}", order.workflow_id, order.status, order.started);
    /// if let Some(stuck) = order.stuck {
    ///     eprintln!("{}", stuck.reason);
    /// }
    /// for activity in order.pending {
    ///     println!("{} {}, attempt {}", activity.activity, activity.state, activity.attempt);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn describe(&self) -> Result<Description> {
        Ok(self.client().describe(self.run.clone()).await?)
    }

    /// Returns what the run waits for, and where in its code: a line for each of its units. The run may have to be played again for that.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// println!("{}", run.inspect().await?);
    /// # Ok(()) }
    /// ```
    pub async fn inspect(&self) -> Result<Inspection> {
        Ok(self.client().inspect(self.run.clone()).await?)
    }

    /// Returns the history of the run: what has happened, in order, in terms that all backends share.
    ///
    /// Of the failed attempts of an activity it has their number and the failure before the last one, not those before it.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// let history = run.history().await?;
    /// println!("{}", history.to_text()); // `to_redacted_text` leaves payloads out.
    /// let last = history.last().map(|event| &event.kind);
    /// # Ok(()) }
    /// ```
    pub async fn history(&self) -> Result<RunHistory> {
        let mut events = Vec::new();
        let mut after = None;
        loop {
            let page = self.client().history(self.run.clone(), after, EVENTS).await?;
            events.extend(page.events);
            after = page.next;
            if after.is_none() {
                return Ok(RunHistory(events));
            }
        }
    }

    /// Returns a page of the history: about `limit` events after the page that ended at this cursor.
    pub async fn history_page(&self, after: Option<Cursor>, limit: usize) -> Result<HistoryPage> {
        Ok(self.client().history(self.run.clone(), after, limit).await?)
    }

    /// Returns the record of the run, turn by turn, as a replay needs it: for a test that replays it with new code. On a Temporal cluster they are made by a replay, so an app has them that
    /// serves the workflow, and a connection has not.
    pub async fn transcript(&self) -> Result<Transcript> {
        self.link.transcript(self.client().raw_history(self.run.clone()).await?).await
    }

    /// Returns the snapshot that the run [published](crate::Ctx::publish) last. The embedded engine keeps it, so that nothing is
    /// played; a Temporal cluster asks a worker for it.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(run: Handle<String>) -> dacapo::Result<()> {
    /// let progress: Option<String> = run.published().await?;
    /// # Ok(()) }
    /// ```
    pub async fn published<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let published = self.client().published(self.run.clone()).await?;
        published.map(|snapshot| self.link.converter().decode(&snapshot).map_err(Error::value)).transpose()
    }
}
