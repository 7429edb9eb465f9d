//! The pure heart of Dacapo: an activation in, a completion out.

mod name;
mod payload;
mod rng;
mod unit_id;

pub use name::Name;
pub use payload::{Headers, Payload};
pub use rng::Rng;
pub use unit_id::{BadUnitId, Seg, UnitId};
