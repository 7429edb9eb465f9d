//! A program that serves.

use std::future::poll_fn;
use std::io::{BufRead, Seek};
use std::ops::Deref;
use std::sync::Arc;
use std::task::Poll;

use dacapo_client::{Client, Feature, Unplayable};
use dacapo_core::Name;
use dacapo_engine::{Engine, Reader, ShutdownReport, blocking, force_exit_after};
use dacapo_worker::{Effective, Health};

use crate::Layers;
use crate::client::link::Link;
use crate::client::serving::{EngineServing, Serving};
use crate::client::stop_signals::StopSignals;
use crate::client::{Connection, Error, Imported, archive};

/// A program that serves workflows and activities. Cheap to clone; all clones are one program, and it serves until it is
/// shut down, or until the last clone, connection and handle of it is gone. What was committed stays, and the next process goes on
/// from there.
///
/// It is a [`Connection`] as well, by which runs are started and found.
///
/// ```
/// use dacapo::prelude::*;
///
/// #[workflow]
/// async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> {
///     Ok(format!("receipt for {order}"))
/// }
///
/// #[tokio::main]
/// async fn main() -> dacapo::Result<()> {
///     let app = Dacapo::open("memory:").await?.serve(checkout).await?;
///     let run = app.start(checkout, "two lamps".into()).id("order-42").await?;
///     assert_eq!(run.result().await?, "receipt for two lamps");
///     app.shutdown().await;
///     Ok(())
/// }
/// ```
///
/// Dropping the last of them blocks until the store is closed; on an async runtime await [`App::stop`] or [`App::shutdown`],
/// which close it on another thread.
#[derive(Clone)]
pub struct App {
    connection: Connection,
    serving: Arc<dyn Serving>,
}

impl Deref for App {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl App {
    /// Creates an app over an engine that the caller drives, as the test kit does.
    #[doc(hidden)]
    pub fn over_engine(engine: Engine, layers: &Layers) -> Self {
        let serving = EngineServing {
            engine,
            host: None,
            settings: None,
            #[cfg(feature = "control")]
            control: None,
        };
        Self::of(serving, layers)
    }

    /// Creates an app over the embedded engine.
    pub(crate) fn of(serving: EngineServing, layers: &Layers) -> Self {
        let (client, reader) = (Arc::new(serving.engine.clone()), serving.engine.reader().clone());
        Self::over(client, Some(reader), Arc::new(serving), layers)
    }

    /// An app whose backend is reached by this client.
    pub(crate) fn over(
        client: Arc<dyn Client>,
        reader: Option<Reader>,
        serving: Arc<dyn Serving>,
        layers: &Layers,
    ) -> Self {
        let connection = Connection(Link::new(client, layers, reader, Some(serving.clone())));
        Self { connection, serving }
    }

    /// Imports the closed runs of a file that [`Runs::export`](crate::Runs::export) wrote. They can be listed, described and asked
    /// from then on.
    ///
    /// Runs that are here already are left as they are. The file is read twice: one that is damaged or was cut changes
    /// nothing. An error of the store on the way leaves those that were taken; taken again, they are known.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// use std::io::BufReader;
    ///
    /// let file = std::fs::File::open("orders-2025.jsonl").expect("the export of last year");
    /// let imported = app.import(BufReader::new(file)).await?;
    /// println!("{} imported, {} were here", imported.runs, imported.known.len());
    /// # Ok(()) }
    /// ```
    pub async fn import(&self, from: impl BufRead + Seek + Send + 'static) -> crate::Result<Imported> {
        let engine = self.serving.engine().ok_or_else(|| self.capabilities().lacks(Feature::Archive))?;
        let mut imported = Imported::default();
        let mut runs = blocking(move || archive::ArchiveReader::checked(from)).await??;
        loop {
            let run;
            (runs, run) = blocking(move || runs.next_run().map(|run| (runs, run))).await??;
            let Some(run) = run else { return Ok(imported) };
            let run_id = run.run.run_id.to_string();
            archive::count_imported(&mut imported, run_id, engine.import(run).await)?;
        }
    }

    /// Replays every open run of the served queues, without changing anything, and returns those that this program's code cannot replay.
    ///
    /// Runs at rest are played when something wakes them, so this is how to see at once what a deploy has done to them.
    /// `progress` is told now and then how many were played.
    /// [`Dacapo::check_open_runs`](crate::Dacapo::check_open_runs) does it before a deploy.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// for run in app.check_open_runs(|played| eprintln!("{played} runs played")).await? {
    ///     eprintln!("{run}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn check_open_runs(&self, progress: impl FnMut(u64) + Send + 'static) -> crate::Result<Vec<Unplayable>> {
        self.serving.check_open_runs(Box::new(progress)).await
    }

    /// Returns the effective settings, and where each comes from; none if the caller set the engine up, as the test kit does.
    pub fn settings(&self) -> Option<&Effective> {
        self.serving.settings()
    }

    /// Returns the health of each queue: code that was asked to stop and has not ended.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// for (queue, health) in app.health() {
    ///     println!("{queue}: {} zombies", health.zombies);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn health(&self) -> Vec<(Name, Health)> {
        self.serving.health()
    }

    /// Returns how many threads run workflow code, and how many were abandoned because such code did not return.
    pub fn turn_threads(&self) -> (usize, usize) {
        self.serving.turn_threads()
    }

    /// Returns how many runs this process has in memory.
    pub fn runs_in_memory(&self) -> usize {
        self.serving.runs_in_memory()
    }

    /// Removes runs from memory that wait for something. Each is loaded again when something comes for it.
    pub fn evict_idle(&self) {
        self.serving.evict_idle();
    }

    /// Shuts down gracefully: begins nothing new, lets attempts end for as long as the grace period, asks the rest to stop and
    /// waits for that as long as the force timeout. Reports what was cut off; the next process tries it again at once.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// let report = app.shutdown().await;
    /// println!("shut down in {:?}", report.took);
    /// for activity in report.cut_off {
    ///     println!("{} was cut off, and will be tried again", activity.activity);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn shutdown(self) -> ShutdownReport {
        let report = self.serving.shut_down().await;
        self.stop().await;
        report
    }

    /// Stops serving at once. Attempts that run are given up and tried again by the next process; callers that wait get an error.
    pub async fn stop(self) {
        let Self { connection, serving } = self;
        drop(connection);
        serving.stop().await;
    }

    /// Serves until the process is asked to end (SIGTERM, or SIGINT as by Ctrl-C), then [shuts down](App::shutdown).
    ///
    /// If even that takes longer than the force-exit timeout, or it is asked once more, the process ends with exit code 1. It says
    /// once what it waits for. Attempts that were cut off are no error: they are in the report, and the next process tries them
    /// again; but tokio's runtime does not end before a blocking thread does, so a `main` that returns may wait for one
    /// until the force-exit timeout. To end at once, call `std::process::exit`. It also shuts down, and gives an
    /// error, when too much code that was asked to stop runs on (`max_zombie_count`), and when the engine has stopped because of
    /// its store: then start the program again.
    ///
    /// A thread of its own listens, so that a program whose runtime is blocked by the code that is to stop ends as well.
    ///
    /// A web server beside it gets a clone of the app, and ends with it:
    ///
    /// ```no_run
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn serve_http(_app: App) {}
    /// # #[tokio::main]
    /// # async fn main() -> dacapo::Result<()> {
    /// let app = Dacapo::open("sqlite:orders.db").await?.serve(checkout).await?;
    /// let web = tokio::spawn(serve_http(app.clone()));
    /// let report = app.serve_until_signalled().await?;
    /// web.abort();
    /// println!("{} attempts were cut off", report.cut_off.len());
    /// # Ok(()) }
    /// ```
    pub async fn serve_until_signalled(self) -> crate::Result<ShutdownReport> {
        let system = |error| Error::System(format!("signals cannot be heard: {error}"));
        let settings = self.serving.settings().map(|settings| settings.app.clone()).unwrap_or_default();
        let force_exit = move || force_exit_after(settings.force_exit_timeout, "it was asked to end");
        let mut requests = StopSignals::new(force_exit).map_err(system)?;
        let mut ending = self.serving.ends_by_itself();
        let waiting = poll_fn(|cx| match ending.as_mut().poll(cx) {
            Poll::Ready(why) => Poll::Ready(Some(why)),
            Poll::Pending => requests.poll(cx).map(|()| None),
        });
        let ended = waiting.await;
        drop(ending);
        requests.end_at_the_next();
        match ended {
            Some(why) => {
                let report = self.shutdown().await;
                Err(report.error.map_or_else(|| Error::Zombies(why), Error::from))
            }
            None => {
                self.serving.log_what_ends();
                let report = self.shutdown().await;
                report.error.clone().map_or(Ok(report), |error| Err(error.into()))
            }
        }
    }
}
