//! Updates that a run hands on to the next of its chain, while the next one already answers them.

use std::time::Duration;

use dacapo::Dacapo;
use dacapo::Query;
use dacapo::prelude::*;
use tokio::task::JoinSet;

const GO: Signal<u64> = Signal::new("go");
const HOW: Query<(), u64> = Query::new("how");
const PUT: Update<u64, u64> = Update::new("put");

/// Continues as new with every signal, and keeps the values of all updates.
#[workflow]
async fn relay(ctx: Ctx, kept: Vec<u64>) -> Result<Vec<u64>, Failure> {
    let kept = ctx.cell(kept);
    let (put, asked) = (kept.clone(), kept.clone());
    ctx.on_query(HOW, move |()| Ok(asked.read(|kept| kept.len() as u64)));
    ctx.on_update(
        PUT,
        |_| Ok(()),
        move |number| {
            let put = put.clone();
            async move {
                put.update(|kept| kept.push(number));
                Ok(number)
            }
        },
    );
    match ctx.next_signal(GO).await? {
        0 => Ok(kept.read(Clone::clone)),
        _ => Err(ctx.continue_as_new(relay, kept.read(Clone::clone))),
    }
}

/// The next run was played before the engine had handed the waiting callers over to it, and they waited for ever. Each
/// update is sent twice under one id, from two tasks, so that the second may find it with either run. Queries find the
/// next run in the store and load it before the hand-over has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn update_is_answered_once_while_its_run_continues_as_new() {
    const RELAYS: u64 = 8;
    const ROUNDS: u64 = 100;
    const EACH: u64 = 3;
    let app = Dacapo::open("memory:")
        .await
        .unwrap()
        .double_play(false)
        .settings(|app| app.cache_size(4))
        .serve(relay)
        .await
        .unwrap();
    let (mut relays, mut askers) = (JoinSet::new(), JoinSet::new());
    for number in 0..RELAYS {
        let run = app.start(relay, vec![]).id(format!("r{number}")).await.unwrap();
        let run = app.handle(relay, run.workflow_id());
        for _ in 0..2 {
            let run = run.clone();
            askers.spawn(async move { while run.query(HOW, ()).await.is_ok() {} });
        }
        relays.spawn(async move {
            for round in 0..ROUNDS {
                let mut senders = JoinSet::new();
                for value in (0..EACH).map(|place| round * EACH + place) {
                    for _ in 0..2 {
                        let run = run.clone();
                        senders.spawn(async move {
                            assert_eq!(run.update(PUT, value).request_id(format!("u{value}")).await.unwrap(), value);
                        });
                    }
                }
                run.signal(GO, 1).await.unwrap();
                senders.join_all().await;
            }
            run.signal(GO, 0).await.unwrap();
            let mut kept = run.result().await.unwrap();
            kept.sort_unstable();
            assert_eq!(kept, (0..ROUNDS * EACH).collect::<Vec<_>>(), "each once");
        });
    }
    // A closed run answers queries too: these tasks end with the engine.
    let ended = tokio::time::timeout(Duration::from_secs(120), relays.join_all()).await;
    assert!(ended.is_ok(), "an update is never answered");
    app.shutdown().await;
    askers.join_all().await;
}
