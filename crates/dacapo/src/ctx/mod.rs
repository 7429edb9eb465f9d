//! The typed ctx: the interface of a run for its workflow code.
//!
//! It adds types to the core's ctx and nothing else: every call here is one call there, made at the same place in the
//! user's source. The futures it returns are `Send + Unpin + 'static`, so they can be raced, joined and stored.

mod attributes;
mod branches;
mod call;
mod child;
mod continued;
mod durable_keys;
mod external;
mod handlers;
mod local_call;
mod log;
mod n_of_m;
mod nexus;
mod phase;
mod promise;
mod recorded;
mod scopes;
mod setters;
mod side_effect;
mod signal;
mod values;
mod waits;

pub use call::Call;
pub use child::{Child, ChildStart, StartedChild};
pub use durable_keys::DurableKeys;
pub use external::SignalExternalCall;
pub use local_call::LocalCall;
pub use n_of_m::NOfM;
pub use nexus::NexusCall;
pub use phase::{Handled, Phase};
pub use promise::OpenPromise;
pub use side_effect::SideEffect;
pub use signal::SignalWait;

use std::fmt;

use dacapo_core::{Failure, Headers, Name, Payload, StateCell, StateGuard};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::interceptor::{InboundKind, OutboundKind, check_message, outbound_headers};
use crate::{Converter, Layers};

/// A workflow's access to its run: calls activities, sleeps, waits for messages, starts children. `S` is the state that its
/// handlers share.
///
/// Calls take effect at once; what they return can be awaited, raced, joined, dropped (which cancels) or detached.
///
/// Cheap to clone. It belongs to its run, and is used by the run's own code while that is played: used from a thread or a task that
/// the code has started, or by another run, it makes the run stuck with a report, and nothing of that turn is recorded.
///
/// ```
/// use dacapo::prelude::*;
///
/// # #[activity] async fn remind(user: String) -> Result<(), Failure> { Ok(()) }
/// const ANSWER: Signal<String> = Signal::new("answer");
///
/// #[workflow]
/// async fn ask(ctx: Ctx, user: String) -> Result<String, Failure> {
///     loop {
///         match ctx.race(ctx.next_signal(ANSWER), ctx.sleep(days(7))).await? {
///             First(answer) => return Ok(answer),
///             Second(()) => ctx.call(remind, user.clone()).await?,
///         }
///     }
/// }
/// ```
pub struct Ctx<S = ()> {
    raw: dacapo_core::Ctx,
    state: StateCell<S>,
    layers: Layers,
}

impl<S> Clone for Ctx<S> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), state: self.state.clone(), layers: self.layers.clone() }
    }
}

impl<S> fmt::Debug for Ctx<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ctx")
    }
}

/// Wraps the core's ctx for a workflow without state.
impl From<dacapo_core::Ctx> for Ctx {
    fn from(raw: dacapo_core::Ctx) -> Self {
        Self::with_state(raw, ())
    }
}

impl<S: Send + 'static> Ctx<S> {
    /// Creates a ctx with the first state of a workflow, from the untyped ctx that the core gives it. Generated code calls it.
    pub fn with_state(raw: dacapo_core::Ctx, state: S) -> Self {
        Self::in_layers(raw, state, Layers::default())
    }

    pub(crate) fn in_layers(raw: dacapo_core::Ctx, state: S, layers: Layers) -> Self {
        let state = raw.state(state);
        Self { raw, state, layers }
    }

    /// Returns the workflow's state, to read and to change.
    ///
    /// The guard is not `Send`, so holding it over an await does not compile: drop it first.
    ///
    /// While a guard lives, a second call of `state` makes the run stuck: `a state cell was entered while it was entered already`.
    /// In `if let` and `match` a guard lives to the end of the whole block, so bind the value with `let` first:
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # struct Cart { rejected: Option<String>, items: u64 }
    /// # async fn example(ctx: Ctx<Cart>) -> Result<(), Failure> {
    /// let rejected = ctx.state().rejected.clone(); // The guard is dropped at the end of this line.
    /// if let Some(reason) = rejected {
    ///     ctx.state().items = 0; // With `ctx.state()` in the `if let` itself, the run would be stuck here.
    ///     return Err(reason.into());
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// In a block of its own:
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # struct Cart { items: u64 }
    /// # async fn example(ctx: Ctx<Cart>) -> Result<(), Failure> {
    /// let total = {
    ///     let mut cart = ctx.state();
    ///     cart.items += 1;
    ///     cart.items
    /// }; // The guard is dropped here.
    /// ctx.sleep(secs(total)).await?;
    /// # Ok(()) }
    /// ```
    #[track_caller]
    pub fn state(&self) -> StateGuard<'_, S> {
        self.state.lock()
    }

    /// Returns the cell that holds the workflow's state, for [`Ctx::phase`].
    pub fn state_cell(&self) -> &StateCell<S> {
        &self.state
    }
}

impl<S> Ctx<S> {
    /// Returns the untyped ctx below this one, which knows names and encoded payloads.
    pub fn raw(&self) -> &dacapo_core::Ctx {
        &self.raw
    }

    /// Returns the same ctx without the state, for functions that need none.
    pub fn plain(&self) -> Ctx {
        Ctx::in_layers(self.raw.clone(), (), self.layers.clone())
    }

    /// Encodes a value with the app's converter, as a payload for a header, a memo or a failure's details.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # #[workflow]
    /// # async fn count(ctx: Ctx, n: u64) -> Result<(), Failure> {
    /// let tenant = ctx.encode("ada")?;
    /// Err(ctx.continue_as_new_with(count, n + 1, |next| drop(next.headers.insert("tenant".into(), tenant))))
    /// # }
    /// ```
    pub fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Payload, Failure> {
        self.converter().encode(value)
    }

    /// Decodes a payload with the app's converter: a header, a failure's details, the result of a Nexus operation. What does
    /// not decode is a failure of type [`BAD_INPUT`](crate::json::BAD_INPUT).
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let start = ctx.info().start;
    /// let tenant: Option<String> = start.headers.get("tenant").map(|tenant| ctx.decode(tenant)).transpose()?;
    /// # Ok(()) }
    /// ```
    pub fn decode<T: DeserializeOwned>(&self, payload: &Payload) -> Result<T, Failure> {
        self.converter().decode(payload)
    }

    pub(crate) fn converter(&self) -> &Converter {
        &self.layers.converter
    }

    /// Shows a message to the interceptors of the app.
    pub(crate) fn check_message(
        &self,
        kind: InboundKind,
    ) -> impl Fn(&Name, &Headers, &[Payload]) -> Result<(), Failure> + Send + Sync + 'static {
        let layers = self.layers.clone();
        let is_shown = !layers.interceptors.is_empty();
        let run = is_shown.then(|| self.raw.info()).flatten().map(|info| info.start);
        move |name, headers, input| match &run {
            Some(run) => check_message(&layers, run, kind, name, headers, input),
            None => Ok(()),
        }
    }

    /// Returns the headers that the interceptors of the app add to a command.
    #[track_caller]
    pub(crate) fn outbound_headers(&self, kind: OutboundKind, name: &Name) -> Headers {
        outbound_headers(&self.layers, &self.raw, kind, name)
    }

    /// Creates a value in memory that all code of this run shares: its concurrent branches and its handlers. Replay rebuilds it.
    ///
    /// A wait with [`Ctx::wait_until`] for what a cell holds is woken when the cell changes.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # async fn example(ctx: Ctx) -> Result<(), Failure> {
    /// let open = ctx.cell(2);
    /// for seconds in [1, 2] {
    ///     let (unit, open) = (ctx.clone(), open.clone());
    ///     drop(ctx.launch(async move {
    ///         unit.sleep(secs(seconds)).await?;
    ///         *open.lock() -= 1;
    ///         Ok(())
    ///     }));
    /// }
    /// ctx.wait_until(move || open.read(|open| *open == 0)).await?;
    /// # Ok(()) }
    /// ```
    pub fn cell<T: Send + 'static>(&self, value: T) -> StateCell<T> {
        self.raw.state(value)
    }
}
