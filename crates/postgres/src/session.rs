//! The session over which a node notifies others, and calls them.

use dacapo_store::NodeNo;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use crate::address::Address;
use crate::failure::Failure;
use crate::link::deadline;

/// A session in which each statement is waited for until the deadline, and the number under which the node began it.
pub(crate) struct Session<'s> {
    pub(crate) address: &'s Address,
    pub(crate) client: &'s Client,
    pub(crate) me: NodeNo,
}

impl Session<'_> {
    pub(crate) async fn script(&self, sql: &str) -> Result<(), Failure> {
        self.in_time(self.client.batch_execute(sql)).await
    }

    pub(crate) async fn query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        self.in_time(self.client.query(sql, values)).await
    }

    /// Waits for an answer of the server until the deadline.
    async fn in_time<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        match tokio::time::timeout(deadline(self.address), call).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Failure::Disconnected("the server has not answered".to_owned())),
        }
    }
}
