//! An opened store, before anything is served.

use std::ffi::OsString;
use std::sync::Arc;

use dacapo_client::Unplayable;
use dacapo_core::{Name, OwnPolicy};
use dacapo_engine::{Cache, CrashLimits, Engine, Options, Reader, Threads, blocking};
use dacapo_store::Store;
use dacapo_worker::{AppSettings, AppValues, Effective, QueueSettings};
use tokio::runtime::Handle;

use crate::client::build_name::build_name;
#[cfg(feature = "control")]
use crate::client::control;
use crate::client::opened::Opened;
use crate::client::serving::EngineServing;
use crate::client::url::Place;
use crate::client::{App, Connection, Error, IntoName, IntoQueue, Result, Runs};
use crate::{Catalog, Converter, Interceptor, Layers, Register};

/// An opened store. Set it up, then [serve](Dacapo::serve) what the program can do.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
/// # #[tokio::main]
/// # async fn main() -> dacapo::Result<()> {
/// // `sqlite:orders.db` keeps the runs in a file, so that the next process goes on with them.
/// let app = Dacapo::open("memory:")
///     .await?
///     .settings(|app| app.retention(days(30)))
///     .serve((checkout, charge))
///     .await?;
/// let run = app.start(checkout, "two lamps".into()).id("order-42").await?;
/// println!("{}", run.result().await?);
/// # app.shutdown().await;
/// # Ok(()) }
/// ```
#[must_use = "an opened store does nothing; serve workflows and activities on it, or look at its runs"]
pub struct Dacapo {
    opened: Opened,
    options: Options,
    settings: AppSettings,
    /// Instead of that of the process.
    environment: Option<Vec<(OsString, OsString)>>,
    /// The converter and the interceptors.
    layers: Layers,
    /// Whether a file that is served gets a socket.
    #[cfg(feature = "control")]
    control_socket: bool,
    /// Reaches the backend as far as the settings are known.
    connection: Connection,
}

impl Dacapo {
    /// Opens a store: `memory:`, `sqlite:orders.db`, or `sqlite:orders.db?mode=ro` to look at a file that another process
    /// serves. With the feature `postgres` also a PostgreSQL database: `postgres://user@localhost/orders`, or the same with `mode=ro`.
    /// With the feature `temporal` also a Temporal cluster: `temporal://localhost:7233/default?queue=orders`.
    /// See [`Dacapo`] for an example.
    pub async fn open(url: &str) -> Result<Self> {
        Ok(Self::over(Opened::open(Place::parse(url)?).await?))
    }

    /// Connects to a backend and serves nothing: looks at the runs of a store that another process serves. A file or a
    /// database is opened for reading only; by a Temporal cluster everything can be done but serving. [`Connection::with_converter`] and [`Connection::with_interceptor`] add to it what the serving
    /// app has. The settings `DACAPO_CRASH_*` of the environment decide which activities it describes as quarantined, as in
    /// [`Dacapo::open`].
    ///
    /// ```no_run
    /// # async fn show() -> dacapo::Result<()> {
    /// let orders = dacapo::Dacapo::connect("sqlite:orders.db").await?;
    /// println!("{} open", orders.runs().count(&dacapo::Filter::open()).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: &str) -> Result<Connection> {
        Ok(Self::over(Opened::open(Place::parse(url)?.connected(url)?).await?).connection)
    }

    /// Opens a store of your own. Stores are no public interface yet.
    #[doc(hidden)]
    pub fn over_store(store: Arc<dyn Store>) -> Self {
        Self::over(Opened::Store { store, backend: "own store", read_only: false, file: None })
    }

    fn over(opened: Opened) -> Self {
        let layers = Layers::default();
        let connection = opened.connection(CrashLimits::default(), &layers);
        let options = Options { build: build_name(), ..Options::default() };
        let settings = AppSettings::new();
        Self {
            opened,
            options,
            settings,
            environment: None,
            layers,
            #[cfg(feature = "control")]
            control_socket: true,
            connection,
        }
        .read_by_settings()
    }

    /// Returns access to the runs in the store: to list, describe, verify and export them.
    pub fn runs(&self) -> Runs {
        self.connection.runs()
    }

    /// Adds a queue to serve. A queue is a name, or [`QueueSettings`]. A program that names none serves `default`; one that names others
    /// serves only these, so name `default` as well where it is to be served: `.queue("default").queue("bulk")`.
    ///
    /// Starts that name no queue go to `default` if this program serves it, otherwise to the queue that it named first. On a Temporal
    /// cluster the queue of the URL takes the place of `default`.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example() -> dacapo::Result<()> {
    /// use dacapo::QueueSettings;
    ///
    /// let renderers = Dacapo::open("sqlite:films.db")
    ///     .await?
    ///     .queue("default")
    ///     .queue(QueueSettings::new("gpu").max_concurrent_activities(2));
    /// # Ok(()) }
    /// ```
    pub fn queue(self, queue: impl IntoQueue) -> Self {
        self.set(|settings| settings.queue(queue.into_queue()))
    }

    /// Changes settings of the application, or of all its queues; `docs/settings.md` lists them. What code sets goes before the
    /// environment.
    ///
    /// ```no_run
    /// # use dacapo::prelude::*;
    /// # async fn open() -> dacapo::Result<()> {
    /// let orders = Dacapo::open("sqlite:orders.db")
    ///     .await?
    ///     .settings(|app| app.cache_size(50_000).retention(days(30)).every_queue(|queue| queue.max_concurrent_activities(20)));
    /// # Ok(()) }
    /// ```
    pub fn settings(self, change: impl FnOnce(AppSettings) -> AppSettings) -> Self {
        self.set(change)
    }

    /// Takes settings from these variables instead of the environment of the process. What code says goes before them.
    pub fn environment<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.environment = Some(variables.collect());
        self.read_by_settings()
    }

    /// Returns the settings that hold if the store is served now, and where each comes from; or all that is wrong with them. They
    /// print as a table.
    pub fn effective(&self) -> Result<Effective> {
        let environment = self.environment.clone().unwrap_or_else(|| std::env::vars_os().collect());
        let mut settings = self.settings.clone().environment(environment);
        if settings.queues().next().is_none() {
            settings = settings.queue(QueueSettings::new(self.opened.default_queue()));
        }
        Ok(settings.effective()?)
    }

    /// The queue of starts that name none: that of the backend if it is served, otherwise the first that was named.
    fn default_queue(&self) -> Name {
        let of_backend = self.opened.default_queue();
        match self.settings.queues().any(|queue| *queue == of_backend) {
            true => of_backend,
            false => self.settings.queues().next().cloned().unwrap_or(of_backend),
        }
    }

    fn set(mut self, change: impl FnOnce(AppSettings) -> AppSettings) -> Self {
        self.settings = change(self.settings);
        self.read_by_settings()
    }

    /// Has runs described by the settings as far as they were given. Wrong settings are an error of whatever needs them.
    fn read_by_settings(mut self) -> Self {
        if let Ok(effective) = self.effective() {
            self.connection = self.opened.connection(crash_limits(&effective.app), &self.layers);
        }
        self
    }

    /// Sets whether every turn is played twice and compared, which finds code that decides by something else than what was
    /// recorded. On in debug builds, off in release builds by default.
    pub fn double_play(mut self, on: bool) -> Self {
        self.options.double_play = on;
        self
    }

    /// Leaves payloads out of reports: of stuck runs, of values that do not decode. What your own code puts into the message of a failure
    /// or a panic stays. Off by default.
    pub fn redact(mut self, on: bool) -> Self {
        self.options.redact = on;
        self.layers.converter = self.layers.converter.redacting(on);
        self.read_by_settings()
    }

    /// Sets the name of this build. The name is kept with every turn it plays, so that a report can say which build recorded what. By
    /// default the program's file name, and when that file was written.
    pub fn build(mut self, name: impl IntoName) -> Self {
        self.options.build = name.into_name();
        self
    }

    /// Encodes and decodes the values of this app with a converter of your own instead of JSON. All apps that talk to each other need
    /// the same one.
    pub fn converter(mut self, converter: impl Into<Converter>) -> Self {
        self.layers.converter = converter.into().redacting(self.options.redact);
        self.read_by_settings()
    }

    /// Puts an interceptor around the calls, workflows and activities of this app, inside those that were added before.
    pub fn intercept(mut self, interceptor: impl Interceptor) -> Self {
        self.layers.intercept(interceptor);
        self.read_by_settings()
    }

    /// Sets whether a file that is served gets a Unix socket beside it, `orders.db-control`, by which other programs of the same user call
    /// this one: the command line, and `Dacapo::connect("unix:orders.db-control")`. On by default. A socket that cannot be made is
    /// logged, and the runs are served without it.
    #[cfg(feature = "control")]
    pub fn control_socket(mut self, on: bool) -> Self {
        self.control_socket = on;
        self
    }

    /// Sets the scheduler policy of runs that are pinned to one of your own: it picks among equals which code of a run goes next.
    pub fn own_policy(mut self, policy: OwnPolicy) -> Self {
        self.options.own_policy = Some(policy);
        self
    }

    /// Serves workflows and activities, and goes on with every run that earlier processes left. Serving happens in the
    /// background until the [`App`] is shut down, or the last clone, connection and handle of it is dropped.
    ///
    /// Several are a tuple: workflows, activities, and objects whose methods are activities.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # #[activity] async fn charge(order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example() -> dacapo::Result<()> {
    /// let app = Dacapo::open("sqlite:orders.db").await?.serve((checkout, charge)).await?;
    /// app.serve_until_signalled().await?;
    /// # Ok(()) }
    /// ```
    pub async fn serve<P>(mut self, items: impl Register<P>) -> Result<App> {
        if let Opened::Store { read_only: true, .. } = self.opened {
            return Err(dacapo_client::Error::ReadOnly(READ_ONLY.to_owned()).into());
        }
        let effective = self.set_up(items)?;
        let (store, file) = match self.opened {
            Opened::Store { store, file, .. } => (store, file),
            #[cfg(feature = "control")]
            Opened::Program(_) => return Err(dacapo_client::Error::ReadOnly(OTHER_PROGRAM.to_owned()).into()),
            #[cfg(feature = "temporal")]
            Opened::Cluster(cluster) => {
                let threads = turn_threads(&effective.app);
                return crate::client::cluster::serve(cluster, self.options, effective, threads, &self.layers).await;
            }
        };
        let (threads, force_exit_timeout) = (turn_threads(&effective.app), effective.app.force_exit_timeout);
        let system = |error: std::io::Error| Error::System(format!("a thread cannot be started: {error}"));
        let host = Threads::new(&self.options, threads, force_exit_timeout, Handle::current()).map_err(system)?;
        let (options, layers, for_engine) = (self.options, self.layers, host.clone());
        let engine = blocking(move || Engine::open(store, for_engine, options)).await??;
        host.watch(&engine).map_err(system)?;
        #[cfg(feature = "control")]
        let control = file.filter(|_| self.control_socket).and_then(|file| control::offer(&file, &engine));
        #[cfg(not(feature = "control"))]
        drop(file);
        let serving = EngineServing {
            engine,
            host: Some(host),
            settings: Some(effective),
            #[cfg(feature = "control")]
            control,
        };
        Ok(App::of(serving, &layers))
    }

    /// Replays every open run of the served queues with these workflows, without serving them and without changing
    /// anything, and returns those that would get stuck after a deploy of this program. Works beside the process
    /// that serves them. `progress` is told now and then how many were played.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example() -> dacapo::Result<()> {
    /// // Before the deploy, with the new build.
    /// for run in Dacapo::open("sqlite:orders.db?mode=ro").await?.check_open_runs(checkout, |_| {}).await? {
    ///     eprintln!("{run}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn check_open_runs<P>(
        mut self,
        items: impl Register<P>,
        mut progress: impl FnMut(u64) + Send + 'static,
    ) -> Result<Vec<Unplayable>> {
        self.set_up(items)?;
        let (store, options) = match self.opened {
            Opened::Store { store, .. } => (store, self.options),
            #[cfg(feature = "control")]
            Opened::Program(_) => return Err(dacapo_client::Error::ReadOnly(OTHER_PROGRAM.to_owned()).into()),
            #[cfg(feature = "temporal")]
            Opened::Cluster(cluster) => {
                let queues = self.options.queues.into_keys().collect();
                let (registry, redact) = (self.options.registry, self.options.redact);
                let check = dacapo_temporal::OpenRuns { cluster, registry, queues, redact };
                return Ok(check.unplayable(Box::new(progress)).await?);
            }
        };
        let reader = Reader::new(store);
        Ok(blocking(move || reader.check_open_runs(&options, &mut progress)).await??)
    }

    /// Takes the settings that hold, and what is served, into the options of the engine.
    fn set_up<P>(&mut self, items: impl Register<P>) -> Result<Effective> {
        let effective = self.effective()?;
        let catalog = Catalog::in_layers(items, self.layers.clone())?;
        let capabilities = self.opened.capabilities();
        catalog.check(&capabilities)?;
        let AppValues { cache_size, payload_limit, message_limit, completions_per_turn, retention, .. } = effective.app;
        self.options = Options {
            registry: catalog.registry,
            pins: catalog.pins.into_iter().collect(),
            queues: effective.queues.clone(),
            default_queue: self.default_queue(),
            cache: Cache::AtMost(cache_size),
            payload_limit,
            message_limit,
            completions_per_turn,
            crash_limits: crash_limits(&effective.app),
            state_dir: effective.app.state_dir.clone(),
            retention: (!retention.is_zero()).then_some(retention),
            capabilities,
            ..std::mem::take(&mut self.options)
        };
        Ok(effective)
    }
}

/// Why the runs of another program cannot be served or played here.
#[cfg(feature = "control")]
const OTHER_PROGRAM: &str =
    "this is a connection to the program that serves the runs: open the store itself, as in `sqlite:orders.db`";

/// Why a store that was opened to look at it cannot be served.
const READ_ONLY: &str = "the store is open for reading only: open it without `mode=ro` in the process that serves it";

/// How many threads play turns: one more than there are processors, if no setting says otherwise.
fn turn_threads(values: &AppValues) -> usize {
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    if values.turn_threads == 0 { processors + 1 } else { values.turn_threads }
}

fn crash_limits(values: &AppValues) -> CrashLimits {
    CrashLimits {
        delay_after: values.crash_delay_after,
        first_delay: values.crash_delay,
        longest_delay: values.crash_delay_limit,
        quarantine_after: values.crash_quarantine_after,
    }
}
