//! What every system is measured with: the workloads, the figures and their form.
//!
//! It knows no system and no database, so that Dacapo and its rivals, which need different builds of SQLite, are driven by
//! the same code.

pub mod finished;
pub mod flushes;
mod latencies;
mod line;
mod long;
mod process;
mod rival;
mod rounds;
mod size;
mod sleepers;
mod system;
pub mod ticks;
mod turnaround;
mod usage;

pub use latencies::Latencies;
pub use line::Line;
pub use long::{Long, Steps};
pub use process::process_cpu_seconds;
pub use rival::{Place, Rival, RivalArguments, measure, new_schema};
pub use rounds::Rounds;
pub use size::Size;
pub use sleepers::start_sleepers;
pub use system::{Shape, System, payload};
pub use turnaround::Turnaround;
pub use usage::Usage;
