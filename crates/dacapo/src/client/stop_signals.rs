//! The signals of the operating system that ask the process to stop: SIGTERM and SIGINT.

use std::future::poll_fn;
use std::task::{Context, Poll};

/// Receives the signals that ask the process to stop.
pub(super) struct StopSignals {
    #[cfg(unix)]
    heard: [tokio::signal::unix::Signal; 2],
    #[cfg(not(unix))]
    heard: std::pin::Pin<Box<dyn Future<Output = std::io::Result<()>> + Send>>,
}

impl StopSignals {
    /// Listens from now on.
    pub(super) fn new() -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self { heard: [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?] })
        }
        #[cfg(not(unix))]
        Ok(Self { heard: Box::pin(tokio::signal::ctrl_c()) })
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        #[cfg(unix)]
        {
            let mut asked = false;
            for signal in &mut self.heard {
                asked |= signal.poll_recv(cx).is_ready();
            }
            if asked { Poll::Ready(()) } else { Poll::Pending }
        }
        #[cfg(not(unix))]
        {
            let asked = self.heard.as_mut().poll(cx).map(drop);
            if asked.is_ready() {
                self.heard = Box::pin(tokio::signal::ctrl_c());
            }
            asked
        }
    }

    /// Ends the process with exit code 1 when it is asked once more. It listens on a thread of its own, because the program's
    /// runtime may be gone by then, and may be waiting for a thread that does not come back.
    pub(super) fn end_at_the_next(self) {
        let cannot = |error: std::io::Error| tracing::error!(%error, "listening for a second signal failed");
        let listen = move || {
            if let Err(error) = self.exit_at_the_next() {
                cannot(error);
            }
        };
        let started = std::thread::Builder::new().name("dacapo-signals".to_owned()).spawn(listen);
        drop(started.map_err(cannot));
    }

    fn exit_at_the_next(mut self) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(poll_fn(|cx| self.poll(cx)));
        eprintln!("dacapo: the process ends now, with exit code 1: it was asked to end again");
        std::process::exit(1);
    }
}
