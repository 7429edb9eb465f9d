//! The deploy gate: whether new code plays the runs that are open, before it is deployed.

mod gate;
mod report;

#[doc(hidden)]
pub use gate::gate;
pub use report::{DeployProblem, DeployReport};

/// Defines a test that replays all open runs of a backend with the workflows of this program, changes nothing, and fails with a report if one
/// of them could not go on. The test is ignored by `cargo test`; `cargo dacapo check --url sqlite:orders.db` runs it.
///
/// ```
/// # use dacapo::prelude::*;
/// # #[workflow] async fn checkout(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// # #[workflow] async fn refund(ctx: Ctx, order: String) -> Result<String, Failure> { Ok(order) }
/// dacapo::deploy_gate!(open_orders, (checkout, refund));
/// ```
///
/// Queues other than `default` follow in brackets: `deploy_gate!(open_orders, (checkout, refund), ["bulk"])`.
#[macro_export]
macro_rules! deploy_gate {
    ($name:ident, $items:expr) => {
        $crate::deploy_gate!($name, $items, ["default"]);
    };
    ($name:ident, $items:expr, [$($queue:expr),+ $(,)?]) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            #[ignore = "replays the open runs of a backend: run it by `cargo dacapo check --url URL`"]
            fn dacapo_deploy_gate() {
                $crate::deploy::gate(stringify!($name), &[$($queue),+], || $items);
            }
        }
    };
}
