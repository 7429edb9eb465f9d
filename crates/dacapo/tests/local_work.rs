//! Local work on threads and on a file, where a commit takes its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dacapo::prelude::*;

struct World {
    attempts: AtomicU64,
}

#[activities]
impl World {
    #[activity]
    async fn touch(self: Arc<Self>, n: u64) -> Result<u64, Failure> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        // sleep: this is the work. A turn that waits for local work is held for a tenth of a second, and is then committed without its
        // result.
        tokio::time::sleep(millis(98 + n % 8)).await;
        Ok(n)
    }
}

#[workflow]
async fn touches(ctx: Ctx, n: u64) -> Result<u64, Failure> {
    ctx.sleep(millis(1)).await?;
    Ok(ctx.call_local(World::touch, n).await? + ctx.call_local(World::touch, n).await?)
}

/// Work that ended while the turn that wants it was on its way to the disk was started a second time, in the same process.
#[tokio::test(flavor = "multi_thread")]
async fn local_work_that_ends_while_its_turn_is_committed_is_not_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("store.db").to_str().unwrap());
    let world = Arc::new(World { attempts: AtomicU64::new(0) });
    let app = Dacapo::open(&url).await.unwrap().serve((touches, world.clone())).await.unwrap();
    let mut runs = Vec::new();
    for n in 0..200 {
        runs.push((n, app.start(touches, n).await.unwrap()));
    }
    for (n, run) in runs {
        assert_eq!(run.result().await, Ok(2 * n));
    }
    assert_eq!(world.attempts.load(Ordering::Relaxed), 400);
}
