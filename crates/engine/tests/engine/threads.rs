//! The engine on real threads: the same promises, while everything happens at once.

use std::sync::Arc;
use std::time::Duration;

use dacapo_core::{Ctx, Failure, Payload};
use dacapo_engine::{Cache, Engine, NewStart, Options, Reader, RunId, Threads};
use dacapo_store::{Filter, MemoryStore, ReadTasks, ReadTimers, Status, Store};
use dacapo_sync::allow_blocking;
use dacapo_testkit::Simulation;

use crate::kit::{Serve, completed, options, payload, signal_of, text};

async fn busy(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    let number: u64 = text(&input).parse().unwrap();
    let all = ctx.join((0..6).map(|step| ctx.activity("add", format!("{number} {step}")))).await;
    let mut sum = 0;
    for one in all {
        sum += text(&one?).parse::<u64>().unwrap();
    }
    let drawn = ctx.side_effect("draw", || async { Ok("1".into()) }).await?;
    let child = ctx.child("echo", drawn).workflow_id(format!("child of {number}")).await?;
    ctx.sleep(Duration::from_millis(1)).await?;
    for _ in 0..3 {
        let signal = ctx.next_signal("add").await?;
        sum += text(&signal.input[0]).parse::<u64>().unwrap();
    }
    Ok(payload((sum + text(&child).parse::<u64>().unwrap()).to_string()))
}

fn serving(cache: Cache) -> Options {
    let mut options = options()
        .workflow("busy", busy)
        .workflow("echo", |_: Ctx, input| async { Ok(input) })
        .activity("add", |_, input| {
            let numbers = text(&input);
            let sum: u64 = numbers.split(' ').map(|number| number.parse::<u64>().unwrap()).sum();
            Ok(payload(sum.to_string()))
        })
        .cache(cache);
    options.double_play = false;
    options
}

/// T-23 C-25
#[test]
fn on_threads_no_completion_is_missed_while_turns_commit() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for cache in [Cache::AtMost(0), Cache::AtMost(3), Cache::AtMost(10_000), Cache::Random(7)] {
        let store = Arc::new(MemoryStore::new());
        let options = serving(cache);
        let host = Threads::new(&options, 3, std::time::Duration::from_secs(60), runtime.handle().clone()).unwrap();
        let engine = Engine::open(store.clone(), host.clone(), options).unwrap();
        host.watch(&engine).unwrap();
        let one = |number: u64| {
            let engine = engine.clone();
            async move {
                let id = RunId::of(number.to_string());
                let new = NewStart {
                    workflow: "busy".into(),
                    workflow_id: id.workflow_id.clone(),
                    input: vec![payload(number.to_string())],
                    ..NewStart::default()
                };
                engine.start(new).await.unwrap();
                for value in ["1", "2", "3"] {
                    engine.signal(&id, signal_of("add", value), None).await.unwrap();
                }
                assert_eq!(engine.result(&id).await.unwrap(), completed(&(number * 6 + 15 + 6 + 1).to_string()));
            }
        };
        runtime.block_on(async {
            let all: Vec<_> = (0..60).map(|number| tokio::spawn(one(number))).collect();
            for (number, one) in all.into_iter().enumerate() {
                let ended = tokio::time::timeout(Duration::from_secs(60), one).await;
                let seen = || allow_blocking(|| engine.describe(&RunId::of(number.to_string())));
                assert!(ended.is_ok(), "run {number} with {cache:?} does not end: {:#?}", seen());
                ended.unwrap().unwrap();
            }
        });
        let open = Filter { status: Some(Status::Open), ..Filter::default() };
        assert_eq!(engine.reader().count(&open), Ok(0), "{cache:?}");
        let tasks = store.tasks(&["default".into()], 0, 10).unwrap();
        assert_eq!((tasks, store.next_due().unwrap()), (Vec::new(), None), "{cache:?}");
        engine.stop();
        host.stop();
        let _: Arc<dyn Store> = store;
    }
}

/// The guard is in builds with debug assertions.
#[cfg(debug_assertions)]
#[tokio::test]
async fn store_access_on_a_thread_of_an_async_runtime_panics_unless_blocking_is_allowed() {
    let panic_of = |call: &dyn Fn()| {
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).expect_err("the guard must panic");
        panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or(panic.downcast_ref::<String>().cloned()).unwrap()
    };
    let store = Arc::new(MemoryStore::new());
    let reader = Reader::new(store.clone());
    let sim = Simulation::over(store, serving(Cache::AtMost(1)));
    sim.start("echo", "a", "1").unwrap();
    let (engine, run) = (sim.engine(), RunId::of("a"));
    let calls: [&dyn Fn(); 6] = [
        &|| drop(reader.count(&Filter::default())),
        &|| drop(reader.describe(&run)),
        &|| drop(reader.history(&run)),
        &|| drop(reader.back_up("nowhere".as_ref())),
        &|| drop(reader.verify(&mut |_| {})),
        &|| drop(engine.describe(&run)),
    ];
    for call in calls {
        let panic = panic_of(call);
        assert!(panic.contains("it belongs to an async runtime"), "{panic}");
        allow_blocking(call);
    }
    let elsewhere = tokio::task::spawn_blocking(move || allow_blocking(|| reader.count(&Filter::default())));
    assert_eq!(elsewhere.await.unwrap(), Ok(1));
}
