//! The activities of the shop, and the pools that they share.
//!
//! Every activity may be tried more than once, so each is written to do its work once: what it does is keyed by the order.

use std::sync::Arc;

use dacapo::prelude::*;
use rusqlite::{OptionalExtension, params};
use tokio::sync::{Semaphore, watch};

use crate::order::{Bill, Items};
use crate::pool::Pool;

/// The shop: a pool of connections to its database, and a client of its bank. It is served as one value, and every attempt
/// gets the same one.
pub struct Shop {
    pool: Arc<Pool>,
    bank: Bank,
}

/// A client of a bank that answers so many calls at a time. The bank is a toy, and its ledger is the shop's own database;
/// it can be closed, to see what orders do then.
struct Bank {
    lines: Semaphore,
    open: watch::Sender<bool>,
}

/// The type of the failure that says: the bank refuses this card.
pub const DECLINED: &str = "Declined";

impl Shop {
    /// The shop whose database is this file.
    pub fn open(path: &str) -> rusqlite::Result<Arc<Self>> {
        let pool = Arc::new(Pool::open(path, 4)?);
        let bank = Bank { lines: Semaphore::new(8), open: watch::Sender::new(true) };
        Ok(Arc::new(Self { pool, bank }))
    }

    /// Puts goods on a shelf that is new; one that is there keeps what it holds.
    pub fn stock(&self, sku: &str, pieces: u32) -> rusqlite::Result<()> {
        self.pool.with(|db| {
            db.execute("INSERT INTO stock VALUES (?1, ?2) ON CONFLICT (sku) DO NOTHING", params![sku, pieces]).map(drop)
        })
    }

    /// How many pieces are left.
    pub fn left(&self, sku: &str) -> rusqlite::Result<u32> {
        self.pool.with(|db| db.query_row("SELECT pieces FROM stock WHERE sku = ?1", [sku], |row| row.get(0)))
    }

    /// How many charges the bank has booked, and how many of them it has paid back.
    pub fn charges(&self) -> rusqlite::Result<(u32, u32)> {
        let sums = "SELECT count(*), coalesce(sum(refunded), 0) FROM charges";
        self.pool.with(|db| db.query_row(sums, [], |row| Ok((row.get(0)?, row.get(1)?))))
    }

    /// Opens or closes the bank. While it is closed, cards that begin with `flaky` fail and those that begin with `slow`
    /// get no answer; other cards are always good, except for `declined`.
    pub fn open_bank(&self, open: bool) {
        self.bank.open.send_replace(open);
    }

    /// Hands a job for the database to a thread that may block.
    async fn database<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let pool = self.pool.clone();
        tokio::task::spawn_blocking(move || pool.with(work)).await.or_fail()?.or_fail()
    }
}

#[activities]
impl Shop {
    /// Puts goods aside for an order. A plain function: it blocks, and gets a thread where it may.
    #[activity]
    pub fn reserve(self: Arc<Self>, items: Items) -> Result<(), Failure> {
        let Items { order, sku, quantity } = items;
        let reserved = self.pool.with(|db| {
            let known = "SELECT 1 FROM reserved WHERE purchase = ?1";
            if db.query_row(known, [&order], |_| Ok(())).optional()?.is_some() {
                return Ok(true);
            }
            let take = "UPDATE stock SET pieces = pieces - ?2 WHERE sku = ?1 AND pieces >= ?2";
            let taken = db.execute(take, params![sku, quantity])? == 1;
            if taken {
                let note = "INSERT INTO reserved (purchase, sku, quantity) VALUES (?1, ?2, ?3)";
                db.execute(note, params![order, sku, quantity])?;
            }
            Ok(taken)
        });
        match reserved.or_fail()? {
            true => Ok(()),
            false => Err(Failure::application(format!("there are no {quantity} pieces of {sku:?} left"))
                .typed("SoldOut")
                .non_retryable()),
        }
    }

    /// Puts the goods of an order back.
    #[activity]
    pub fn release(self: Arc<Self>, order: String) -> Result<(), Failure> {
        let released = self.pool.with(|db| {
            let mark = "UPDATE reserved SET released = 1 WHERE purchase = ?1 AND released = 0";
            if db.execute(mark, [&order])? == 1 {
                let back = "UPDATE stock SET pieces = pieces + reserved.quantity FROM reserved
                            WHERE reserved.purchase = ?1 AND stock.sku = reserved.sku";
                db.execute(back, [&order])?;
            }
            Ok(())
        });
        released.or_fail()
    }

    /// Looks for fraud. Since v2.
    #[activity]
    pub async fn screen(self: Arc<Self>, card: String) -> Result<bool, Failure> {
        Ok(card != "stolen")
    }

    /// Charges a card, once for each order.
    ///
    /// The key is the order and not `ActivityCtx::idempotency_key`: a run that is reset is another run, and must not
    /// charge again either.
    #[activity]
    pub async fn charge(self: Arc<Self>, bill: Bill) -> Result<String, Failure> {
        let Bill { order, card, cents, reference } = bill;
        if card == "declined" {
            return Err(Failure::application("the bank declined the card").typed(DECLINED).non_retryable());
        }
        if card.starts_with("flaky") && !*self.bank.open.borrow() {
            return Err("the bank does not answer".into());
        }
        if card.starts_with("slow") {
            let mut open = self.bank.open.subscribe();
            open.wait_for(|open| *open).await.or_fail()?;
        }
        let _line = self.bank.lines.acquire().await.or_fail()?;
        self.database(move |db| {
            let book = "INSERT INTO charges (purchase, cents, reference) VALUES (?1, ?2, ?3)
                        ON CONFLICT (purchase) DO NOTHING";
            db.execute(book, params![order, cents, reference])?;
            Ok(format!("receipt-{order}"))
        })
        .await
    }

    /// Pays back what an order was charged.
    #[activity]
    pub async fn refund(self: Arc<Self>, order: String) -> Result<(), Failure> {
        let _line = self.bank.lines.acquire().await.or_fail()?;
        let refund = "UPDATE charges SET refunded = 1 WHERE purchase = ?1";
        self.database(move |db| db.execute(refund, [&order]).map(drop)).await
    }

    /// Wraps a gift. Since v2.
    #[activity]
    pub async fn wrap(self: Arc<Self>, order: String) -> Result<(), Failure> {
        let _ = order;
        Ok(())
    }

    /// Gives bonus points for an order. Since v4.
    #[activity]
    pub async fn reward(self: Arc<Self>, order: String, cents: u32) -> Result<u32, Failure> {
        let earned = cents / 100;
        self.database(move |db| {
            let note = "INSERT INTO points VALUES (?1, ?2) ON CONFLICT (purchase) DO NOTHING";
            db.execute(note, params![order, earned])?;
            Ok(earned)
        })
        .await
    }

    /// Sends the goods of an order, and says under which number.
    #[activity]
    pub async fn ship(self: Arc<Self>, order: String) -> Result<String, Failure> {
        self.database(move |db| {
            db.execute("INSERT INTO parcels (purchase) VALUES (?1) ON CONFLICT (purchase) DO NOTHING", [&order])?;
            Ok(format!("parcel-{order}"))
        })
        .await
    }
}
