//! Connections beside the one that commits. A thread takes one for each read, so that readers do not wait for each other.

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
use crate::traffic::TotalTraffic;
use crate::trip::Trip;

/// The most connections that are kept while no thread reads.
const KEPT: usize = 8;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Readers {
    address: Address,
    idle: Mutex<Vec<Link>>,
    /// Whether they only read. The connections of a node also take tasks.
    is_read_only: bool,
    /// Set when the store closes: from then on nothing waits for the server to come back.
    closing: Arc<AtomicBool>,
    pub(crate) traffic: TotalTraffic,
}

impl Readers {
    pub(crate) fn new(address: Address, is_read_only: bool, closing: Arc<AtomicBool>) -> Self {
        let idle = Mutex::new(ranks::STORE_READER, Vec::new());
        Self { address, idle, is_read_only, closing, traffic: TotalTraffic::default() }
    }

    /// Runs the statements of a trip once, and returns the rows of each. If the connection is lost, it is not known whether they
    /// were made.
    pub(crate) fn run_once(&self, trip: &Trip<'_>) -> Result<Vec<Vec<Row>>, StoreError> {
        let idle = self.idle.lock().pop();
        let run = idle.map_or_else(|| self.connect(0), Ok).and_then(|mut link| {
            let rows = self.count(&mut link, trip)?;
            Ok((link, rows))
        });
        run.map(|(link, rows)| self.keep(link, rows)).map_err(|failure| {
            self.drop_idle();
            failure.into_error()
        })
    }

    /// Runs the statements of a trip over this connection, and counts it.
    fn count(&self, link: &mut Link, trip: &Trip<'_>) -> Result<Vec<Vec<Row>>, Failure> {
        let before = link.traffic;
        let rows = link.run(trip);
        self.traffic.add(link.traffic.since(before));
        rows
    }

    /// Drops idle connections: when the server has ended they are of no use.
    fn drop_idle(&self) {
        let stale = std::mem::take(&mut *self.idle.lock());
        drop(stale);
    }

    /// Keeps a connection for the next reader.
    fn keep<R>(&self, link: Link, rows: R) -> R {
        let mut idle = self.idle.lock();
        if idle.len() < KEPT {
            idle.push(link);
        }
        rows
    }

    /// Runs the statements of a trip and returns the rows of each. Waits while the server is away.
    pub(crate) fn run(&self, trip: &Trip<'_>) -> Result<Vec<Vec<Row>>, StoreError> {
        let (mut pause, mut too_late) = (FIRST_PAUSE, 0);
        loop {
            // A read that took too long has more time on a connection of its own.
            let idle = if too_late == 0 { self.idle.lock().pop() } else { None };
            let link = idle.map_or_else(|| self.connect(too_late), Ok);
            let read = link.and_then(|mut link| {
                let rows = self.count(&mut link, trip).inspect_err(|_| too_late += u32::from(link.is_late))?;
                Ok((link, rows))
            });
            match read {
                Ok((link, rows)) => return Ok(self.keep(link, rows)),
                Err(Failure::Disconnected(_) | Failure::Conflict(_)) if !self.closing.load(Ordering::Acquire) => {
                    self.drop_idle();
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(failure) => return Err(failure.into_error()),
            }
        }
    }

    fn connect(&self, too_late: u32) -> Result<Link, Failure> {
        let mut link = Link::connect_patiently(&self.address, too_late)?;
        if self.is_read_only {
            link.script("SET default_transaction_read_only = on")?;
        }
        Ok(link)
    }
}
