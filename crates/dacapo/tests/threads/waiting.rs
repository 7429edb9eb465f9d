//! Waits that end: a test that waits in vain fails and says for what.

use std::time::{Duration, Instant};

/// How long a test waits: far longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits until a condition holds. Panics after two minutes with `what` it waited for.
pub(crate) async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < LIMIT, "waited {LIMIT:?} in vain for {what}");
        // sleep: leaves the processor to the threads that are waited for, between two looks.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
