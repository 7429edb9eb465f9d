//! The pure heart of Dacapo: an activation in, a completion out.

mod name;
mod payload;
mod policy;
mod rng;
mod unit_id;

pub use name::Name;
pub use payload::{Headers, Payload};
pub use policy::{
    Action, Choice, ChoiceLog, Deterministic, Divergence, Enabled, LogHeader, Policy, PolicyError, PolicyKind,
    PolicyOptions, PolicyWarning, Random, Replay, Scheduler, TurnChoices,
};
pub use rng::Rng;
pub use unit_id::{BadUnitId, Seg, UnitId};
