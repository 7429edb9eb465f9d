//! The typed ctx: all that workflow code can ask of its run.
//!
//! It adds types to the core's ctx and nothing else: every call here is one call there, made at the same place in the
//! user's source. What it gives are futures that are `Send + Unpin + 'static`, so they can be raced, joined and stored.

mod attributes;
mod branches;
mod call;
mod child;
mod continued;
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
mod side_effect;
mod signal;
mod store;
mod values;
mod waits;

pub use call::Call;
pub use child::{Child, ChildStart, StartedChild};
pub use local_call::LocalCall;
pub use n_of_m::NOfM;
pub use nexus::NexusCall;
pub use phase::{Handled, Phase};
pub use promise::OpenPromise;
pub use side_effect::SideEffect;
pub use signal::SignalWait;
pub use store::Store;

use std::fmt;

use dacapo_core::{Failure, Headers, Name, Payload, StateCell, StateGuard};

use crate::interceptor::{InboundKind, OutboundKind, check_message, outbound_headers};
use crate::{Converter, Layers};

/// A workflow's access to its run, and to the state `S` that its handlers share. Cheap to clone, and it belongs to the
/// run: the unit that is running is the one that calls. Any other use fails the activation, and no command leaves.
///
/// Everything here is a plain function that takes effect when it is called; what it returns can be awaited, raced,
/// joined, dropped (which cancels) or detached.
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

/// Types around a raw ctx, for a workflow without state.
impl From<dacapo_core::Ctx> for Ctx {
    fn from(raw: dacapo_core::Ctx) -> Self {
        Self::with_state(raw, ())
    }
}

impl<S: Send + 'static> Ctx<S> {
    /// Types around a raw ctx, with the first state.
    pub fn with_state(raw: dacapo_core::Ctx, state: S) -> Self {
        Self::in_layers(raw, state, Layers::default())
    }

    pub(crate) fn in_layers(raw: dacapo_core::Ctx, state: S, layers: Layers) -> Self {
        let state = raw.state(state);
        Self { raw, state, layers }
    }

    /// The state, to look at and to change. The guard is not `Send`, so holding it over an await does not compile: let go
    /// of it first.
    #[track_caller]
    pub fn state(&self) -> StateGuard<'_, S> {
        self.state.lock()
    }

    /// The cell that holds the state, for [`Ctx::phase`].
    pub fn state_cell(&self) -> &StateCell<S> {
        &self.state
    }
}

impl<S> Ctx<S> {
    /// The core's ctx: names and payload bytes.
    pub fn raw(&self) -> &dacapo_core::Ctx {
        &self.raw
    }

    /// The same ctx without the state, for functions that need none.
    pub fn plain(&self) -> Ctx {
        Ctx::in_layers(self.raw.clone(), (), self.layers.clone())
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
        move |name, headers, input| check_message(&layers, kind, name, headers, input)
    }

    /// Returns the headers that the interceptors of the app add to a command.
    #[track_caller]
    pub(crate) fn outbound_headers(&self, kind: OutboundKind, name: &Name) -> Headers {
        outbound_headers(&self.layers, &self.raw, kind, name)
    }

    /// A value that units and handlers of this run share. Replay rebuilds it like everything else in memory.
    pub fn cell<T: Send + 'static>(&self, value: T) -> StateCell<T> {
        self.raw.state(value)
    }
}
