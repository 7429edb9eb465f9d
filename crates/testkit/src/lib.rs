//! Tests of workflows: [`Kit`] is the whole engine in the test's own thread, on virtual time, with fakes for activities.
//!
//! ```
//! use dacapo::prelude::*;
//! use dacapo_testkit::Kit;
//!
//! #[activity]
//! async fn email(to: String, text: String) -> Result<(), Failure> {
//!     unimplemented!("tests send no email")
//! }
//!
//! #[workflow]
//! async fn trial(ctx: Ctx, user: String) -> Result<String, Failure> {
//!     ctx.call(email, (user.clone(), "welcome".into())).await?;
//!     ctx.sleep(days(30)).await?;
//!     ctx.call(email, (user, "it is over".into())).await?;
//!     Ok("lapsed".into())
//! }
//!
//! let mut kit = Kit::new();
//! let emails = kit.fake(email, |_| Ok(()));
//! assert_eq!(kit.run(trial, "ada".into()), Ok("lapsed".into()));
//! assert_eq!(emails.calls().len(), 2);
//! ```
//!
//! [`Kit::sweep`] plays such a test once for every moment at which the process can die. The guide to testing,
//! `docs/test.md`, goes on from here.

mod check;
mod checksums;
mod crash;
mod fake;
mod golden;
#[cfg(doctest)]
mod guides;
mod kit;
mod ledger;
mod player;
mod real_time;
mod render;
mod script;
mod simulated_nodes;
mod simulation;
mod store_layer;
mod sweep;
mod temporal_server;
mod virtual_host;
mod virtual_time;

pub use crash::Moment;
pub use dacapo_engine::Cache;
pub use fake::{Fake, FakeCtx};
pub use kit::{Kit, KitRun};
pub use ledger::AttemptCounts;
pub use sweep::{Sweep, Swept};
pub use virtual_time::Sleep;

// What follows is for the tests of Dacapo itself, and may change in any version.

#[doc(hidden)]
pub use check::{check, check_replay, check_workflow, workflow};
#[doc(hidden)]
pub use checksums::{sealed, sealed_lines};
#[doc(hidden)]
pub use expect_test::{Expect, expect};
#[doc(hidden)]
pub use golden::{WRITE_GOLDEN, assert_golden};
#[doc(hidden)]
pub use player::{Mode, Player};
#[doc(hidden)]
pub use render::render_completion;
#[doc(hidden)]
pub use script::{JobLine, Script, Step};
#[doc(hidden)]
pub use simulated_nodes::{LEASE, Meanwhile, NoticesFor, RENEWAL, SLOW_POLL, SimulatedNodes};
#[doc(hidden)]
pub use simulation::{CACHES, Simulation};
#[doc(hidden)]
pub use store_layer::{LayeredStore, StoreLayer};
#[doc(hidden)]
pub use temporal_server::{SHARED_SERVER, TEMPORAL_TOOL, TemporalServer};
