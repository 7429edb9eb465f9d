//! A bank outside of the store: a book of payments, each with the key of its request.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

/// A payment, as a line of the book.
#[derive(Debug, Serialize, Deserialize)]
struct Payment {
    key: String,
    from: String,
    to: String,
    cents: i64,
}

/// A book in a file.
pub(super) struct Bank {
    path: PathBuf,
    book: Mutex<Book>,
    repeated: AtomicU64,
}

struct Book {
    file: File,
    keys: BTreeSet<String>,
}

impl Bank {
    /// Opens the book, and cuts off a last line that a crash left unfinished.
    pub(super) fn open(path: &Path) -> io::Result<Arc<Self>> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let (payments, length) = read(&mut file)?;
        file.set_len(length)?;
        let keys = payments.into_iter().map(|payment| payment.key).collect();
        let book = Mutex::new(Book { file, keys });
        Ok(Arc::new(Self { path: path.to_owned(), book, repeated: AtomicU64::new(0) }))
    }

    /// Makes a payment once: one whose key is in the book is made already.
    pub(super) fn pay(&self, key: &str, from: &str, to: &str, cents: i64) -> io::Result<()> {
        let mut book = self.book.lock().expect("no payment panics");
        if book.keys.contains(key) {
            self.repeated.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let payment = Payment { key: key.to_owned(), from: from.to_owned(), to: to.to_owned(), cents };
        let line = serde_json::to_string(&payment)? + "\n";
        book.file.write_all(line.as_bytes())?;
        book.file.sync_data()?;
        book.keys.insert(payment.key);
        Ok(())
    }

    /// Returns how many payments were asked for again since the book was opened.
    pub(super) fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// Returns what every account has, read from the file.
    pub(super) fn balances(&self) -> io::Result<Vec<(String, i64)>> {
        let mut balances: BTreeMap<String, i64> = BTreeMap::new();
        for Payment { from, to, cents, .. } in read(&mut File::open(&self.path)?)?.0 {
            *balances.entry(from).or_default() -= cents;
            *balances.entry(to).or_default() += cents;
        }
        Ok(balances.into_iter().collect())
    }
}

/// Reads all whole lines, and returns where they end.
fn read(file: &mut File) -> io::Result<(Vec<Payment>, u64)> {
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::new(file);
    let (mut payments, mut length, mut line) = (Vec::new(), 0, String::new());
    loop {
        line.clear();
        let bytes = reader.read_line(&mut line)?;
        if bytes == 0 || !line.ends_with('\n') {
            return Ok((payments, length));
        }
        payments.push(serde_json::from_str(&line)?);
        length += bytes as u64;
    }
}
