//! Spans and events: each turn and attempt has a span, and what code says is heard once, however often it is played.

use dacapo_core::{Ctx, Payload, Retry};
use dacapo_engine::{Cache, Options};
use dacapo_testkit::{CACHES, Simulation, expect};

use crate::kit::{Serve, completed, every_second, options, payload, query, signal, text};
use crate::log::logged;

/// Says when it goes, as a guard of the user's might.
struct LogsWhenDropped;

impl Drop for LogsWhenDropped {
    fn drop(&mut self) {
        tracing::info!("the guard has gone");
    }
}

fn talks() -> Options {
    options()
        .workflow("talks", |ctx: Ctx, _| async move {
            tracing::info!("begun");
            ctx.on_query("how", |_: &dacapo_core::Query| {
                tracing::info!("asked");
                Ok(payload("well"))
            });
            let guard = LogsWhenDropped;
            let tried = ctx.activity("try", "").retry(every_second(2)).await?;
            tracing::info!("tried {}", text(&tried));
            ctx.local_activity("here", "").await?;
            ctx.side_effect("draw", || async {
                tracing::info!("drawn");
                Ok(Payload::empty())
            })
            .retry(Retry::none())
            .await?;
            let span = tracing::info_span!("mine");
            span.in_scope(|| tracing::info!("local work is done"));
            ctx.next_signal("go").await?;
            drop(guard);
            tracing::info!("over");
            Ok(tried)
        })
        .waiting("try", |ctx, _| async move {
            tracing::info!("trying");
            match ctx.info().attempt {
                1 => Err(dacapo_core::Failure::application("not yet")),
                _ => Ok(payload("twice")),
            }
        })
        .activity("here", |_, input| {
            tracing::info!("local");
            Ok(input)
        })
}

fn story(cache: Cache, double_play: bool) -> String {
    let mut options = talks().cache(cache);
    options.double_play = double_play;
    logged(|| {
        let sim = Simulation::new(options);
        sim.start("talks", "a", "").unwrap();
        sim.advance(std::time::Duration::from_secs(2));
        assert_eq!(query(&sim, "a", "how").unwrap(), "well");
        let sim = sim.restart();
        assert_eq!(query(&sim, "a", "how").unwrap(), "well");
        signal(&sim, "a", "go", "");
        assert_eq!(sim.result("a"), completed("twice"));
    })
}

/// The first play of a turn is heard and no other, whatever stays in memory, played once or twice.
#[test]
fn workflow_log_line_is_written_once_over_replays() {
    let first = story(Cache::AtMost(10_000), false);
    expect![[r#"
        turn workflow=talks workflow_id=a run_id=run-000001 queue=default turn=0
          in turn: begun
        attempt activity=try activity_id=b1dc28d2-cf7b-488d-bdd0-feddbe640650 attempt=1 workflow_id=a run_id=run-000001 queue=default
          in attempt: trying
        attempt activity=try activity_id=b1dc28d2-cf7b-488d-bdd0-feddbe640650 attempt=2 workflow_id=a run_id=run-000001 queue=default
          in attempt: trying
        turn workflow=talks workflow_id=a run_id=run-000001 queue=default turn=1
          in turn: tried twice
        attempt activity=here activity_id=1977f764-bc72-4e05-89f4-04c7d3c55049 attempt=1 workflow_id=a run_id=run-000001 queue=default
          in attempt: local
        turn workflow=talks workflow_id=a run_id=run-000001 queue=default turn=2
        attempt activity=draw activity_id=2d250f0c-cc0d-464c-8fab-eb007262201d attempt=1 workflow_id=a run_id=run-000001 queue=default
          in attempt: drawn
        turn workflow=talks workflow_id=a run_id=run-000001 queue=default turn=3
        mine
          in mine: local work is done
        query workflow=talks workflow_id=a run_id=run-000001 queue=default query="how"
          in query: asked
        query workflow=talks workflow_id=a run_id=run-000001 queue=default query="how"
          in query: asked
        turn workflow=talks workflow_id=a run_id=run-000001 queue=default turn=4
          in turn: the guard has gone
          in turn: over
    "#]].assert_eq(&first);
    for cache in CACHES {
        for double_play in [false, true] {
            assert_eq!(story(cache, double_play), first, "{cache:?}, double play {double_play}");
        }
    }
}

/// A turn that failed left nothing behind: played anew, it is new, and so is what it says.
#[test]
fn log_line_of_a_failed_turn_is_written_again_when_it_is_repeated() {
    let mut options = options().workflow("fails", |_: Ctx, _| async move {
        tracing::info!("trying");
        panic!("not today")
    });
    options.double_play = false;
    let said = logged(|| {
        let sim = Simulation::new(options);
        sim.start("fails", "a", "").unwrap();
        sim.advance(std::time::Duration::from_secs(1));
    });
    assert_eq!(said.matches("in turn: trying").count(), 2, "{said}");
}
