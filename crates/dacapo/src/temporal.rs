//! What is special to a Temporal cluster. Programs that serve there need nothing of it: they open another URL.

use crate::{Catalog, Register, Result};

/// Replays the history of a run with these workflows, and fails if they decide anything else than what was recorded. No server is
/// needed, and no activity is executed. For a unit test before a deploy:
///
/// ```no_run
/// # use dacapo::prelude::*;
/// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// #[test]
/// fn recorded_order_can_be_played() -> dacapo::Result<()> {
///     // What `temporal workflow show --workflow-id order-42 --output json` has printed.
///     dacapo::temporal::replay(checkout, &std::fs::read_to_string("tests/order-42.json").unwrap())
/// }
/// ```
///
/// Temporal's core compares the order of commands, and the names and ids of activities and children; other inputs and durations
/// are not compared.
pub fn replay<P>(items: impl Register<P>, history: &str) -> Result<()> {
    Ok(dacapo_temporal::replay_json(&Catalog::of(items)?.registry, history)?)
}
