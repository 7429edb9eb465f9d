//! The ctx: the interface of a run for its workflow code. Names and payload bytes in, plain data out.

mod activity;
mod branches;
mod cancel;
mod child;
mod condition;
mod external;
mod handlers;
mod join;
mod launch;
mod nexus;
mod operation;
mod parallel;
mod phase;
mod promise;
mod race;
mod race_of;
mod scope;
mod select_all;
mod side_effect;
mod signal;
mod standings;
mod state_cell;
mod timer;
mod values;
mod woken;
mod yield_now;

pub use activity::{Activity, LocalActivity};
pub use cancel::{CancelHandle, Cancellable, Shield};
pub use child::{Child, ChildStart, StartedChild};
pub use condition::WaitUntil;
pub use external::{CancelExternalCall, SignalExternalCall};
pub use join::{Join, TryJoin};
pub use launch::Launched;
pub use nexus::{Nexus, NexusStart, StartedNexus};
pub use parallel::Parallel;
pub use phase::{Handled, PhaseBuilder, PhaseEnd};
pub use promise::Promise;
pub use race::{Either, Race, Timeout};
pub use race_of::{Entrants, OneOf3, OneOf4, OneOf5, OneOf6, OneOf7, OneOf8, Race3, Race4, Race5, Race6, Race7, Race8};
pub use scope::{Scope, ScopePlay};
pub use select_all::SelectAll;
pub use side_effect::SideEffect;
pub use signal::SignalWait;
pub use state_cell::{StateCell, StateGuard};
pub use timer::Timer;
pub use values::Info;
pub use yield_now::YieldNow;

use std::panic::Location;
use std::sync::Arc;

use crate::run::Shared;

/// A workflow's access to its run. Cheap to clone, and it belongs to the run, not to a unit: the unit that is running is
/// the one that calls. Any other use is a scheduler violation: the activation fails and no command leaves.
///
/// Everything here is a plain function that takes effect when it is called; what it returns can be awaited, raced,
/// joined, dropped (which cancels) or detached.
#[derive(Clone)]
pub struct Ctx {
    pub(crate) shared: Arc<Shared>,
}

impl Ctx {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Fails the activation, never the run. Layers above call it when this code cannot read a recorded or delivered
    /// value. The run stays open and stuck, with this message as the reason, and goes on under code that can read the
    /// value. In a query it fails the query alone. The message says what was found, what was expected and what to do;
    /// `site` is the call that it is about.
    pub fn refuse(&self, message: impl Into<String>, site: &'static Location<'static>) -> ! {
        self.shared.refuse(message.into(), site)
    }
}

impl std::fmt::Debug for Ctx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ctx")
    }
}
