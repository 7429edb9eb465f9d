//! Connections that only read. A thread takes one for each read, so that readers do not wait for each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use dacapo_store::StoreError;
use dacapo_sync::{Mutex, ranks};
use tokio_postgres::Row;

use crate::address::Address;
use crate::failure::Failure;
use crate::link::Link;
use crate::trip::Trip;

/// The most connections that are kept while nobody reads.
const KEPT: usize = 8;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Readers {
    address: Address,
    idle: Mutex<Vec<Link>>,
    /// Set when the store closes: from then on nothing waits for the server to come back.
    closing: Arc<AtomicBool>,
}

impl Readers {
    pub(crate) fn new(address: Address, closing: Arc<AtomicBool>) -> Self {
        Self { address, idle: Mutex::new(ranks::STORE_READER, Vec::new()), closing }
    }

    /// Runs the statements of a trip and returns the rows of each. Waits while the server is away.
    pub(crate) fn run(&self, trip: &Trip<'_>) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let idle = self.idle.lock().pop();
            let link = idle.map_or_else(|| self.connect(), Ok);
            let read = link.and_then(|mut link| {
                let rows = link.run(trip)?;
                Ok((link, rows))
            });
            match read {
                Ok((link, rows)) => {
                    let mut idle = self.idle.lock();
                    if idle.len() < KEPT {
                        idle.push(link);
                    }
                    return Ok(rows);
                }
                Err(Failure::Disconnected(_) | Failure::Conflict(_)) if !self.closing.load(Ordering::Acquire) => {
                    // Connections that were idle when the server ended are of no use.
                    let stale = std::mem::take(&mut *self.idle.lock());
                    drop(stale);
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(failure) => return Err(failure.into_error()),
            }
        }
    }

    fn connect(&self) -> Result<Link, Failure> {
        let mut link = Link::connect(&self.address)?;
        link.script("SET default_transaction_read_only = on")?;
        Ok(link)
    }
}
