//! The signals of the operating system that ask the process to stop: SIGTERM and SIGINT.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Receives the signals that ask the process to stop.
///
/// It listens on a thread and a runtime of its own: the program's runtime may be blocked by the code that is to stop, or be gone
/// by the time of the second signal.
pub(super) struct StopSignals {
    asked: oneshot::Receiver<()>,
    is_ending: Arc<AtomicBool>,
}

impl StopSignals {
    /// Listens from now on. At the first signal `at_the_first` runs, on the thread that listens. The second one, or one that comes
    /// when the program ends for another reason or waits for none any more, ends the process with exit code 1.
    pub(super) fn new(at_the_first: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let listener = Listener::new(&runtime)?;
        let (tell, asked) = oneshot::channel();
        let is_ending = Arc::new(AtomicBool::new(false));
        let ending = is_ending.clone();
        let listen = move || runtime.block_on(listen(listener, &ending, at_the_first, tell));
        std::thread::Builder::new().name("dacapo-signals".to_owned()).spawn(listen)?;
        Ok(Self { asked, is_ending })
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The thread ends only with the process.
        Pin::new(&mut self.asked).poll(cx).map(drop)
    }

    /// Lets the next signal end the process, because the program ends for another reason.
    pub(super) fn end_at_the_next(&self) {
        self.is_ending.store(true, Ordering::Release);
    }
}

async fn listen(
    mut listener: Listener,
    is_ending: &AtomicBool,
    at_the_first: impl FnOnce(),
    tell: oneshot::Sender<()>,
) {
    listener.next().await;
    if !is_ending.swap(true, Ordering::AcqRel) && !tell.is_closed() {
        at_the_first();
        if tell.send(()).is_ok() {
            listener.next().await;
        }
    }
    eprintln!("dacapo: the process ends now, with exit code 1: it was asked to end again");
    std::process::exit(1);
}

#[cfg(unix)]
struct Listener([tokio::signal::unix::Signal; 2]);

#[cfg(unix)]
impl Listener {
    fn new(runtime: &Runtime) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let _guard = runtime.enter();
        Ok(Self([signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?]))
    }

    async fn next(&mut self) {
        std::future::poll_fn(|cx| {
            // Both are polled: signals of both kinds that came together ask once.
            let came = self.0.each_mut().map(|signal| signal.poll_recv(cx).is_ready());
            if came.contains(&true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[cfg(not(unix))]
struct Listener;

#[cfg(not(unix))]
impl Listener {
    fn new(_: &Runtime) -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Where signals cannot be heard there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
