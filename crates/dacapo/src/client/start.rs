//! Starting a run.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use dacapo_client::{IdConflict, StartRun};
use dacapo_core::{Failure, IdReuse, Name, Payload, Pins, Retry};
use serde::Serialize;

use crate::client::link::Link;
use crate::client::{Error, Handle, IntoName, Result};
use crate::json::BAD_OUTPUT;
use crate::{Attr, IntoAttribute, attribute};

/// A start of a run: set options, then await it for a [`Handle`].
///
/// ```
/// # use dacapo::prelude::*;
/// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// # async fn example(app: App) -> dacapo::Result<()> {
/// const CITY: Attr<String> = Attr::new("city");
///
/// let run = app
///     .start(checkout, "two lamps".into())
///     .id("order-42")
///     .request_id("order-42") // The same request again is the same run.
///     .execution_timeout(days(30))
///     .attr(CITY, "Lisboa".into())
///     .memo("customer", "Ada Lovelace")
///     .header("tenant", "ada")
///     .await?;
/// println!("{}", if run.is_new() { "ordered" } else { "ordered before" });
/// # Ok(()) }
/// ```
#[must_use = "a start does nothing unless it is awaited"]
pub struct StartCall<O> {
    link: Link,
    new: StartRun,
    /// The first value that could not be encoded.
    failure: Option<Failure>,
    output: PhantomData<fn() -> O>,
}

impl<O> StartCall<O> {
    pub(crate) fn new(link: Link, workflow: Name, input: std::result::Result<Vec<Payload>, Failure>) -> Self {
        let (input, failure) = match input {
            Ok(input) => (input, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let workflow_id = uuid::Uuid::now_v7().to_string().into();
        let new = StartRun { workflow, workflow_id, input, ..StartRun::default() };
        Self { link, new, failure, output: PhantomData }
    }

    /// Sets the workflow id: the program's own name for the run, unique among open runs. A random one by default.
    pub fn id(mut self, workflow_id: impl IntoName) -> Self {
        self.new.workflow_id = workflow_id.into_name();
        self
    }

    /// Sets the task queue on which the run is served. By default `default` if the program that starts it serves that queue, otherwise
    /// the one that it [named first](crate::Dacapo::queue).
    pub fn queue(mut self, queue: impl IntoName) -> Self {
        self.new.queue = Some(queue.into_name());
        self
    }

    /// Sets whether the workflow id may have been used by a closed run. By default it may.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// // Never a second run of one order, and a second request gets the one that is open.
    /// let run = app
    ///     .start(checkout, "two lamps".into())
    ///     .id("order-42")
    ///     .id_reuse(IdReuse::RejectDuplicate)
    ///     .id_conflict(IdConflict::UseExisting)
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn id_reuse(mut self, reuse: IdReuse) -> Self {
        self.new.id_reuse = reuse;
        self
    }

    /// Sets what happens if the workflow id is in use by an open run. By default the start is refused. See [`id_reuse`](Self::id_reuse).
    pub fn id_conflict(mut self, conflict: IdConflict) -> Self {
        self.new.id_conflict = conflict;
        self
    }

    /// Sets the program's key for this request: the same key again is the same start, however often it is sent.
    pub fn request_id(mut self, request_id: impl IntoName) -> Self {
        self.new.request_id = Some(request_id.into_name());
        self
    }

    /// Limits the time from the start of the first run to the end of the last of its chain. No limit by default.
    pub fn execution_timeout(mut self, timeout: Duration) -> Self {
        self.new.execution_timeout = Some(timeout);
        self
    }

    /// Limits the time from the start of one run to its end. No limit by default.
    pub fn run_timeout(mut self, timeout: Duration) -> Self {
        self.new.run_timeout = Some(timeout);
        self
    }

    /// Sets how long the run waits before it begins.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// app.start(checkout, "two lamps".into()).id("order-43").delay(hours(8)).await?;
    /// # Ok(()) }
    /// ```
    pub fn delay(mut self, delay: Duration) -> Self {
        self.new.delay = Some(delay);
        self
    }

    /// Sets when the workflow is run again after a failure, as a new run of the same chain. Never by default.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
    /// # async fn example(app: App) -> dacapo::Result<()> {
    /// let retry = Retry::exponential().attempts(3).first_pause(mins(10));
    /// app.start(checkout, "two lamps".into()).retry(retry).await?;
    /// # Ok(()) }
    /// ```
    pub fn retry(mut self, retry: Retry) -> Self {
        self.new.retry = Some(retry);
        self
    }

    /// Sets an entry of the memo: a note for people, which descriptions of the run show.
    pub fn memo<T: Serialize + ?Sized>(mut self, name: impl IntoName, value: &T) -> Self {
        match self.link.converter().encode(value) {
            Ok(value) => drop(self.new.memo.insert(name.into_name(), value)),
            Err(failure) => drop(self.failure.get_or_insert(failure)),
        }
        self
    }

    /// Sets a search attribute. A value that stores cannot hold, such as a number that is not finite or a keyword of more
    /// than 255 bytes, fails the start.
    pub fn attr<T: IntoAttribute>(mut self, attribute: Attr<T>, value: T) -> Self {
        match attribute::checked(attribute.into(), value) {
            Ok((name, value)) => drop(self.new.attributes.insert(name, value)),
            Err(bad) => {
                self.failure.get_or_insert_with(|| Failure::application(bad.to_string()).typed(BAD_OUTPUT));
            }
        }
        self
    }

    /// Adds a header: a named value that travels beside the arguments. One that cannot be encoded fails the start.
    pub fn header<T: Serialize + ?Sized>(mut self, name: impl IntoName, value: &T) -> Self {
        self.link.add_header(&mut self.new.headers, &mut self.failure, name.into_name(), value);
        self
    }

    /// Adds a header that is encoded already.
    pub fn header_payload(mut self, name: impl IntoName, value: impl Into<Payload>) -> Self {
        self.new.headers.insert(name.into_name(), value.into());
        self
    }

    /// Sets facts that the run keeps for life, such as its scheduler policy. By default those of the registered workflow.
    pub fn pins(mut self, pins: Pins) -> Self {
        self.new.pins = Some(pins);
        self
    }
}

impl<O: 'static> IntoFuture for StartCall<O> {
    type Output = Result<Handle<O>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { link, new, failure, .. } = self;
        Box::pin(async move {
            if let Some(failure) = failure {
                return Err(Error::value(failure));
            }
            if let Some(pins) = &new.pins {
                link.client().capabilities().check_pins(pins)?;
            }
            let started = link.client().start(new).await?;
            Ok(Handle::started(link, started.run, started.is_new))
        })
    }
}
