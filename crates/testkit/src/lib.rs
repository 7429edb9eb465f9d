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
//! [`Kit::sweep`] plays such a test once for every moment at which the process can die.
//!
//! # Scripts
//!
//! For tests of the core itself, a script of activations plays a workflow, and all its decisions are compared with the
//! expectation.
//!
//! Each script is played three times: whole, with the run evicted and replayed between all turns, and twice side by
//! side. All three must print the same and record the same bytes; only then is the result compared with the
//! expectation.
//!
//! ```
//! use dacapo_core::{Ctx, Failure, Payload};
//! use dacapo_testkit::{check, expect};
//!
//! async fn greet(ctx: Ctx, name: Payload) -> Result<Payload, Failure> {
//!     ctx.activity("say hello", name).await
//! }
//!
//! check(
//!     greet,
//!     "start = ada
//!      resolve say hello = hello ada",
//!     expect![[r#"
//!         turn 0  [] activity say hello
//!         turn 1  [] complete hello ada
//!     "#]],
//! );
//! ```

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

pub use check::{check, check_replay, check_workflow, workflow};
pub use checksums::{sealed, sealed_lines};
pub use crash::Moment;
pub use dacapo_engine::Cache;
pub use expect_test::{Expect, expect};
pub use fake::{Fake, FakeCtx};
pub use golden::{WRITE_GOLDEN, assert_golden};
pub use kit::{Kit, KitRun};
pub use ledger::AttemptCounts;
pub use player::{Mode, Player};
pub use render::render_completion;
pub use script::{JobLine, Script, Step};
pub use simulated_nodes::{LEASE, Meanwhile, NoticesFor, RENEWAL, SLOW_POLL, SimulatedNodes};
pub use simulation::{CACHES, Simulation};
pub use store_layer::{LayeredStore, StoreLayer};
pub use sweep::{Sweep, Swept};
pub use temporal_server::{SHARED_SERVER, TEMPORAL_TOOL, TemporalServer};
pub use virtual_time::Sleep;
