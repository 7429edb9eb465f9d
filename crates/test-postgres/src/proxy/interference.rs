//! What a proxy does to the bytes that it passes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The statement with which the store begins a transaction, and the name that a connection has given it.
const BEGIN: &[u8] = b"\0BEGIN READ WRITE\0";

/// How long bytes are waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// The interference of one proxy, in all its connections.
#[derive(Default)]
pub(super) struct Interference {
    /// Whether the answers of commits are lost.
    pub(super) loses_commits: AtomicBool,
    /// Whether the next transaction does not begin.
    pub(super) fails_to_begin: AtomicBool,
    stop: Mutex<Stop>,
    changed: Condvar,
}

/// A place in what clients send, before which their bytes wait.
#[derive(Default)]
struct Stop {
    at: Option<Vec<u8>>,
    is_reached: bool,
    /// Which of the stops of the proxy it is.
    number: u64,
}

/// Bytes that wait in a proxy until this is dropped, or others are to wait.
pub struct Stopped {
    interference: Arc<Interference>,
    number: u64,
}

impl Stopped {
    /// Waits until a client has sent the bytes.
    ///
    /// # Panics
    /// If none has after a minute.
    pub fn until_reached(&self) {
        let is_awaited = |stop: &mut Stop| stop.number == self.number && !stop.is_reached;
        let Interference { changed, .. } = &*self.interference;
        let waiting = changed.wait_timeout_while(self.interference.stop(), LIMIT, is_awaited);
        let (mut stop, _) = waiting.expect("no holder of the lock panics");
        assert!(!is_awaited(&mut stop), "no client has sent it");
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let mut stop = self.interference.stop();
        if stop.number == self.number {
            stop.at = None;
        }
        self.interference.changed.notify_all();
    }
}

impl Interference {
    fn stop(&self) -> MutexGuard<'_, Stop> {
        self.stop.lock().expect("no holder of the lock panics")
    }

    /// Has bytes wait in which a client sends this text, and no others any more.
    pub(super) fn stop_at(self: Arc<Self>, text: &str) -> Stopped {
        let mut stop = self.stop();
        let number = stop.number + 1;
        *stop = Stop { at: Some(text.as_bytes().to_vec()), is_reached: false, number };
        self.changed.notify_all();
        drop(stop);
        Stopped { interference: self, number }
    }

    /// Waits as long as these bytes are to wait.
    fn wait(&self, bytes: &[u8]) {
        let mut stop = self.stop();
        while stop.at.as_ref().is_some_and(|at| find(bytes, at).is_some()) {
            stop.is_reached = true;
            self.changed.notify_all();
            stop = self.changed.wait(stop).expect("no holder of the lock panics");
        }
    }

    /// Whether these bytes of a server tell of a commit whose answer is to be lost.
    pub(super) fn loses(&self, bytes: &[u8]) -> bool {
        self.loses_commits.load(Ordering::Relaxed) && find(bytes, b"COMMIT\0").is_some()
    }
}

/// The side of a connection on which the client sends.
pub(super) struct Requests {
    interference: Arc<Interference>,
    /// The name of the statement that begins a transaction.
    begin: Option<Vec<u8>>,
}

impl Requests {
    pub(super) fn new(interference: Arc<Interference>) -> Self {
        Self { interference, begin: None }
    }

    /// Changes bytes that a client sends, and waits as long as they are to wait.
    pub(super) fn interfere(&mut self, bytes: &mut [u8]) {
        if let Some(end) = find(bytes, BEGIN) {
            let before = &bytes[..end];
            let name = before.rsplit(|byte| !byte.is_ascii_alphanumeric()).next().unwrap_or_default();
            self.begin = Some(name.to_vec());
        }
        if self.interference.fails_to_begin.load(Ordering::Relaxed)
            && let Some(at) = self.begin.as_ref().and_then(|name| call_of(bytes, name))
        {
            // No statement has this name, so the server refuses the call, and no other.
            bytes[at] = b'-';
            self.interference.fails_to_begin.store(false, Ordering::Relaxed);
        }
        self.interference.wait(bytes);
    }
}

/// Returns the place of a statement's name where it is called: `B`, four bytes of length, no name of a portal, and the name.
fn call_of(bytes: &[u8], name: &[u8]) -> Option<usize> {
    let named: Vec<u8> = [b"\0", name, b"\0"].concat();
    let places = (5..bytes.len()).filter(|at| bytes[*at..].starts_with(&named) && bytes[*at - 5] == b'B');
    places.map(|at| at + 1).next()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_that_begins_a_transaction_is_found_by_the_name_that_the_connection_gave_it() {
        let interference = Arc::new(Interference::default());
        let mut requests = Requests::new(interference.clone());
        let mut prepares = b"P\0\0\0\x1as7\0BEGIN READ WRITE\0\0\0".to_vec();
        requests.interfere(&mut prepares);
        interference.fails_to_begin.store(true, Ordering::Relaxed);
        let mut calls = b"B\0\0\0\x0e\0s70\0\0\0\0\0\0\0B\0\0\0\x0d\0s7\0\0\0\0\0\0\0".to_vec();
        let before = calls.clone();
        requests.interfere(&mut calls);
        let changed: Vec<usize> = (0..before.len()).filter(|at| before[*at] != calls[*at]).collect();
        assert_eq!(changed, [22], "the other statement has a longer name");
        requests.interfere(&mut before.clone());
        assert!(!interference.fails_to_begin.load(Ordering::Relaxed), "it fails once");
    }
}
