//! A proxy that cuts connections, and interferes with what they carry.

mod interference;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use self::interference::Stopped;
use self::interference::{Interference, Requests};

/// A port that leads to a server.
pub struct Proxy {
    port: u16,
    open: Arc<Mutex<Vec<Connection>>>,
    interference: Arc<Interference>,
    is_shut: Arc<AtomicBool>,
}

/// A connection through a proxy.
struct Connection {
    streams: [TcpStream; 2],
    /// Whether nothing is passed on any more, though both sides find their connection open.
    is_silent: Arc<AtomicBool>,
}

/// A thread that cuts connections.
pub struct Cutting {
    ends: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
    thread: JoinHandle<()>,
}

impl Proxy {
    /// Begins to pass on connections to this address.
    ///
    /// # Panics
    /// If the loopback has no free port.
    pub fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let open: Arc<Mutex<Vec<Connection>>> = Arc::default();
        let interference: Arc<Interference> = Arc::default();
        let is_shut = Arc::new(AtomicBool::new(false));
        let refuses = is_shut.clone();
        let (server, kept, interferes) = (server.to_owned(), open.clone(), interference.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if refuses.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&server) else { continue };
                let mut open = kept.lock().expect("no thread panics with it");
                let is_silent = Arc::new(AtomicBool::new(false));
                let copies = || [&client, &server].map(|side| side.try_clone().expect("a socket has a copy"));
                let ([from, to], silent) = (copies(), is_silent.clone());
                let mut requests = Requests::new(interferes.clone());
                thread::spawn(move || {
                    pass(from, to, &silent, |bytes| {
                        requests.interfere(bytes);
                        false
                    })
                });
                let ([to, from], silent, interferes) = (copies(), is_silent.clone(), interferes.clone());
                thread::spawn(move || pass(from, to, &silent, |bytes| interferes.loses(bytes)));
                open.push(Connection { streams: [client, server], is_silent });
                drop(open);
                if refuses.load(Ordering::SeqCst) {
                    // It was shut meanwhile.
                    cut(&kept);
                }
            }
        });
        Self { port, open, interference, is_shut }
    }

    /// Passes nothing on any more over the connections that are open now, and leaves them open. New connections are passed on.
    ///
    /// # Panics
    /// If a thread has.
    pub fn fall_silent(&self) {
        for connection in self.open.lock().expect("no thread panics with it").iter() {
            connection.is_silent.store(true, Ordering::Relaxed);
        }
    }

    /// Loses the answers of commits from now on, or no longer. A connection that has lost one falls silent.
    pub fn lose_commits(&self, loses: bool) {
        self.interference.loses_commits.store(loses, Ordering::Relaxed);
    }

    /// Has the next transaction of the store not begin, though the statements after that are run.
    pub fn fail_to_begin(&self) {
        self.interference.fails_to_begin.store(true, Ordering::Relaxed);
    }

    /// Has the statement wait in which a client sends this text, with all that it sends after it. What waited for another goes on.
    #[must_use]
    pub fn stop_at(&self, text: &str) -> Stopped {
        self.interference.clone().stop_at(text)
    }

    /// Cuts all connections now.
    pub fn cut(&self) {
        cut(&self.open);
    }

    /// Cuts all connections, and accepts none until it is opened.
    pub fn shut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Accepts connections again.
    pub fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }

    /// Returns a URL that leads to this proxy in place of the server.
    ///
    /// # Panics
    /// If the URL has no user or no database.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        let (before, after) = url.split_once('@').expect("the URL has a user");
        let rest = &after[after.find('/').expect("the URL has a database")..];
        format!("{before}@127.0.0.1:{}{rest}", self.port)
    }

    /// Cuts all connections again and again, after pauses from this range.
    pub fn cuts_every(&self, pauses: Range<Duration>) -> Cutting {
        let (ends, cuts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (open, ended, counted) = (self.open.clone(), ends.clone(), cuts.clone());
        let thread = thread::spawn(move || {
            let mut dice = 7_u64;
            while !ended.load(Ordering::Relaxed) {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let span = (pauses.end - pauses.start).as_micros() as u64;
                thread::park_timeout(pauses.start + Duration::from_micros((dice >> 33) % span));
                cut(&open);
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Cutting { ends, cuts, thread }
    }
}

impl Cutting {
    /// Returns how often connections were cut.
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }

    /// Cuts no more.
    ///
    /// # Panics
    /// If the thread has.
    pub fn stop(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().expect("it does not panic");
    }
}

fn cut(open: &Mutex<Vec<Connection>>) {
    for connection in open.lock().expect("no thread panics with it").drain(..) {
        for stream in connection.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Passes bytes on until one side ends. The connection falls silent before bytes of which `interferes` says so.
fn pass(mut from: TcpStream, mut to: TcpStream, is_silent: &AtomicBool, mut interferes: impl FnMut(&mut [u8]) -> bool) {
    let mut buffer = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..count];
        if interferes(bytes) {
            is_silent.store(true, Ordering::Relaxed);
        }
        if !is_silent.load(Ordering::Relaxed) && to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
