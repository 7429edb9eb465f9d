//! Code that cannot go on: why its run is stuck, or how it failed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use dacapo::prelude::*;
use dacapo_testkit::Kit;
use tempfile::tempdir;

use crate::cause::Page;

const GO: Signal<u64> = Signal::new("go");

#[activity]
async fn charge(cents: u64) -> Result<u64, Failure> {
    Ok(cents)
}

/// Awaits a timer of tokio.
#[activity]
async fn slow() -> Result<(), Failure> {
    // sleep: never begins: workflow code awaits this attempt, and is refused.
    tokio::time::sleep(millis(1)).await;
    Ok(())
}

/// Plays a workflow's first turn, and adds why it is stuck or how it failed.
macro_rules! page {
    ($page:ident, $cause:literal, |$ctx:ident| $body:expr) => {{
        #[workflow(name = "order")]
        async fn order($ctx: Ctx) -> Result<(), Failure> {
            $body
        }
        let mut kit = Kit::new().runs_may_get_stuck();
        let run = kit.start(order, ());
        $page.text($cause, &said(&mut kit, run.workflow_id()));
    }};
}

fn said(kit: &mut Kit, workflow_id: &str) -> String {
    kit.advance(secs(0));
    let handle = kit.app().handle_raw(workflow_id.to_owned());
    let described = kit.wait(handle.describe()).unwrap();
    match (described.stuck, described.result) {
        (Some(stuck), _) => stuck.reason,
        (None, Some(Err(failure))) => failure.to_string(),
        other => panic!("{workflow_id} goes on: {other:?}"),
    }
}

/// Code that breaks the rules of workflows.
pub(crate) fn code(page: &mut Page) {
    page!(page, "panic in workflow code", |ctx| {
        let items: Vec<u64> = Vec::new();
        ctx.sleep(secs(0)).detach();
        Err(format!("{}", items[3]).into())
    });
    page!(page, "sleep with tokio in a workflow", |ctx| {
        let _ = ctx.now();
        // sleep: never begins, because workflow code has no runtime.
        tokio::time::sleep(secs(1)).await;
        Ok(())
    });
    page!(page, "await the function of an activity in a workflow", |ctx| {
        let _ = ctx.now();
        slow().await
    });
    page!(page, "use the ctx on another thread", |ctx| {
        let moved = ctx.clone();
        let _ = std::thread::spawn(move || drop(moved.sleep(secs(1)))).join();
        ctx.sleep(secs(1)).await?;
        Ok(())
    });
    page!(page, "decide by state that runs share", |ctx| {
        static ORDERS: AtomicU64 = AtomicU64::new(0);
        ctx.call(charge, ORDERS.fetch_add(1, Ordering::Relaxed)).await.map(drop)
    });
    page!(page, "set an option after the first await", |ctx| {
        let mut call = ctx.call(charge, 1);
        let _ = ctx.race(&mut call, ctx.sleep(secs(0))).await?;
        call.start_to_close(secs(1)).await.map(drop)
    });
}

/// Calls of a workflow that cannot be made.
pub(crate) fn calls(page: &mut Page) {
    page!(page, "call an activity that is not served", |ctx| ctx.call(charge, 1).await.map(drop));
    page!(page, "call an activity without a name", |ctx| ctx.call_raw("", [serde_json::json!(1)]).await.map(drop));
    page!(page, "call an activity with a timeout of zero", |ctx| {
        ctx.call(charge, 1).start_to_close(secs(0)).await.map(drop)
    });
    page!(page, "call an activity on a queue that is not served", |ctx| {
        ctx.call(charge, 1).queue("slow").await.map(drop)
    });
    page!(page, "pass an input that is too large", |ctx| {
        ctx.call_raw("charge", [serde_json::json!("x".repeat(3 << 20))]).await.map(drop)
    });
    page!(page, "pass an input that is no JSON", |ctx| {
        ctx.publish(&HashMap::from([(vec![1_u8], 1)]));
        Ok(())
    });
    page!(page, "start a child with a cron line", |ctx| {
        ctx.child_raw("order", [serde_json::json!(null)])
            .with(|child| child.cron = Some("@daily".into()))
            .await
            .map(drop)
    });
    page!(page, "signal a run that is not open", |ctx| ctx.signal_external("absent", GO, 1).await);
    page!(page, "register two handlers of one signal", |ctx| {
        ctx.on_signal(GO, |_| async { Ok(()) });
        ctx.on_signal(GO, |_| async { Ok(()) });
        Ok(())
    });
    page!(page, "wait for a signal that a handler takes", |ctx| {
        ctx.on_signal(GO, |_| async { Ok(()) });
        ctx.next_signal(GO).await.map(drop)
    });
    page!(page, "ask for more successes than there are futures", |ctx| {
        ctx.n_of_m(3, [ctx.sleep(secs(1)), ctx.sleep(secs(2))]).await.map(drop)
    });
    page!(page, "patch without a name", |ctx| {
        ctx.patched("");
        Ok(())
    });
}

/// Code that does not fit what was recorded, or is not there.
pub(crate) async fn changes(page: &mut Page) {
    mod before {
        use super::*;

        #[workflow]
        pub(crate) async fn order(ctx: Ctx, cents: u64) -> Result<u64, Failure> {
            ctx.sleep(days(14)).await?;
            ctx.call(charge, cents).await
        }
    }
    mod after {
        use super::*;

        #[workflow]
        pub(crate) async fn order(ctx: Ctx, cents: u64) -> Result<u64, Failure> {
            ctx.sleep(days(21)).await?;
            ctx.call(charge, cents).await
        }
    }
    mod renamed {
        use super::*;

        #[workflow(name = "order_v2")]
        pub(crate) async fn order(ctx: Ctx, cents: u64) -> Result<u64, Failure> {
            ctx.call(charge, cents).await
        }
    }
    mod other_type {
        use super::*;

        #[workflow]
        pub(crate) async fn order(ctx: Ctx, _item: String) -> Result<(), Failure> {
            Ok(ctx.sleep(days(14)).await?)
        }
    }
    let folder = tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("orders.db").display());
    let app = Dacapo::open(&url).await.unwrap().build("1.4.0").serve((before::order, charge)).await.unwrap();
    app.start(before::order, 700).id("order-42").await.unwrap();
    app.shutdown().await;
    let url = format!("{url}?mode=ro");
    let found = Dacapo::open(&url).await.unwrap().check_open_runs(after::order, |_| ()).await.unwrap();
    page.text("change how long a sleep lasts while a run is open", &found[0].to_string());
    let found = Dacapo::open(&url).await.unwrap().check_open_runs(renamed::order, |_| ()).await.unwrap();
    page.text("deploy without a workflow that has open runs", &found[0].to_string());
    let found = Dacapo::open(&url).await.unwrap().check_open_runs(other_type::order, |_| ()).await.unwrap();
    page.text("change the type of an input while a run is open", &found[0].to_string());
}
