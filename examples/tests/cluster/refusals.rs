//! What a cluster cannot do is refused by name, and changes nothing.

use dacapo::core::{PolicySpec, Workflow};
use dacapo::prelude::*;
use dacapo::{CancelType, ClientError, Error, Feature, Filter, Pins, Promise, StuckCause, WorkflowDef};

use crate::{Namespace, described, wait, within};

const WORD: Promise<String> = Promise::new("word");
const GO: Signal<()> = Signal::new("go");

#[workflow]
async fn promised(ctx: Ctx) -> Result<String, Failure> {
    let word = ctx.promise(WORD).await?;
    ctx.next_signal(GO).await?;
    Ok(word)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_that_was_resolved_refuses_another_resolution_and_keeps_the_first() {
    with_cache_of(1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_stays_resolved_when_its_run_has_left_memory() {
    with_cache_of(0).await;
}

async fn with_cache_of(size: usize) {
    let namespace = Namespace::new();
    let app = namespace.open().await.settings(|app| app.cache_size(size)).serve(promised).await.unwrap();
    let run = app.start(promised, ()).id("run").await.unwrap();
    let Err(Error::Client(ClientError::PromiseNotFound { open, .. })) = run.resolve_raw("other", "x".into()).await
    else {
        panic!("there is no such promise")
    };
    assert_eq!(open, "word");
    run.resolve(WORD, "first".to_owned()).await.unwrap();
    if size == 0 {
        wait("it leaves memory", async || (app.runs_in_memory() == 0).then_some(())).await;
        assert!(run.describe().await.unwrap().status.is_open());
    }
    let refused = run.resolve(WORD, "second".to_owned()).await.unwrap_err();
    assert_eq!(refused, Error::Client(ClientError::AlreadyResolved("word".into())));
    run.signal(GO, ()).await.unwrap();
    assert_eq!(within("it ends", run.result()).await.as_deref(), Ok("first"));
    assert!(!namespace.events("run").iter().any(|event| event.to_string().contains("second")), "it left no trace");
    app.shutdown().await;
}

#[workflow]
async fn loses_interest(ctx: Ctx) -> Result<bool, Failure> {
    let lost = ctx.race(ctx.promise(WORD), ctx.next_signal(GO)).await?;
    ctx.next_signal(GO).await?;
    Ok(matches!(lost, Second(())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_that_the_workflow_has_dropped_is_not_found() {
    let namespace = Namespace::new();
    let app = namespace.serve(loses_interest).await;
    let run = app.start(loses_interest, ()).id("run").await.unwrap();
    run.signal(GO, ()).await.unwrap();
    described("it has lost interest", &run, |run| run.turns > 0).await;
    let refused = run.resolve(WORD, "too late".to_owned()).await.unwrap_err();
    assert!(matches!(refused, Error::Client(ClientError::PromiseNotFound { .. })), "{refused}");
    run.signal(GO, ()).await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(true));
    app.shutdown().await;
}

/// Ends while a promise is open.
#[workflow]
async fn ends_with_a_promise(ctx: Ctx) -> Result<(), Failure> {
    // Not dropped: that would cancel it.
    std::mem::forget(ctx.promise(WORD));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resolution_that_comes_with_the_task_in_which_its_promise_is_opened_and_the_run_ends_is_refused() {
    let namespace = Namespace::new();
    let client = Dacapo::connect(&namespace.url).await.unwrap();
    for id in 0.. {
        let run = client.start(ends_with_a_promise, ()).id(format!("run-{id}")).await.unwrap();
        let resolving = tokio::spawn({
            let run = run.clone();
            async move { run.resolve(WORD, "too late".to_owned()).await }
        });
        // sleep: the server has to have it before a worker takes the first task. Where it has not, another run is tried.
        tokio::time::sleep(millis(300)).await;
        let app = namespace.serve(ends_with_a_promise).await;
        assert_eq!(within("it ends", run.result()).await, Ok(()));
        let refused = within("it is refused", resolving).await.unwrap().unwrap_err();
        app.shutdown().await;
        if matches!(refused, Error::Client(ClientError::PromiseNotFound { .. })) {
            break;
        }
        assert!(id < 5, "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feature_that_a_cluster_lacks_is_refused_by_name() {
    let namespace = Namespace::new();
    let app = namespace.serve(promised).await;
    let run = app.start(promised, ()).id("run").await.unwrap();
    described("it waits", &run, |run| run.turns == 1).await;
    let lacks = |feature| Error::Client(ClientError::Unsupported { feature, backend: "temporal".to_owned() });
    assert_eq!(app.runs().back_up("/nowhere").await, Err(lacks(Feature::Backup)));
    assert_eq!(app.runs().verify(|_| {}).await.map(drop), Err(lacks(Feature::Verification)));
    assert_eq!(app.import(std::io::Cursor::new(Vec::new())).await.map(drop), Err(lacks(Feature::Archive)));
    assert_eq!(app.runs().export(&Filter::all(), Vec::new()).await.map(drop), Err(lacks(Feature::Archive)));
    assert_eq!(run.release().await, Err(lacks(Feature::Quarantine)));
    assert_eq!(app.runs().stuck_runs().await.map(drop), Err(lacks(Feature::StuckRuns)));
    assert_eq!(app.runs().count(&dacapo::Filter::stuck()).await, Err(lacks(Feature::StuckRuns)));
    let random = Pins { policy: PolicySpec::Random { seed: 7 }, ..Pins::default() };
    let refused = app.start(promised, ()).id("other").pins(random).await.map(drop);
    assert_eq!(refused, Err(lacks(Feature::Policies)));
    assert!(matches!(run.delete().await, Err(Error::Client(ClientError::RunOpen))));
    let refused = run.reset(9, "too far").await.map(drop).unwrap_err().to_string();
    assert!(refused.contains("turn 9 cannot be reset to") && refused.contains("the nearest is turn 0"), "{refused}");
    let refused = run.signal_raw("dacapo:left-signals", true.into()).await.unwrap_err().to_string();
    assert!(refused.contains("are reserved"), "{refused}");
    run.terminate("seen").await.unwrap();
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflow_with_a_random_policy_is_refused_when_it_is_served() {
    let namespace = Namespace::new();
    let mut random = WorkflowDef::from(Workflow::new("explores", |_, _| async { Ok(Default::default()) }));
    random.pins.policy = PolicySpec::Random { seed: 7 };
    let refused = namespace.open().await.serve(random).await.map(drop);
    let lacks = ClientError::Unsupported { feature: Feature::Policies, backend: "temporal".to_owned() };
    assert_eq!(refused, Err(Error::Client(lacks)));
}

#[activity]
async fn slow(ctx: ActivityCtx) -> Result<(), Failure> {
    Err(ctx.cancelled().await.into())
}

#[workflow]
async fn detaches(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(slow, ()).start_to_close(secs(60)).detach();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_would_leave_a_detached_activity_is_stuck_and_says_what_to_do() {
    let namespace = Namespace::new();
    let app = namespace.serve((detaches, slow)).await;
    let run = app.start(detaches, ()).await.unwrap();
    let stuck = described("it is stuck", &run, |run| run.stuck.is_some()).await.stuck.unwrap();
    assert_eq!(stuck.cause, StuckCause::Unsupported);
    for part in ["\"slow\" was detached", "examples/tests/cluster/refusals.rs", "ParentClose::Abandon"] {
        assert!(stuck.reason.contains(part), "{}", stuck.reason);
    }
    run.terminate("seen").await.unwrap();
    app.shutdown().await;
}

const LARGE: Signal<String> = Signal::new("large");

/// Continues as new without a look at its signals.
#[workflow]
async fn ignores_signals(ctx: Ctx, round: u64) -> Result<u64, Failure> {
    if round == 1 {
        return Ok(round);
    }
    ctx.next_signal(GO).await?;
    Err(ctx.continue_as_new(ignores_signals, 1))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_would_hand_on_too_many_bytes_of_signals_is_stuck_and_names_their_size() {
    let namespace = Namespace::new();
    let app = namespace.serve(ignores_signals).await;
    let run = app.start(ignores_signals, 0).id("run").await.unwrap();
    for _ in 0..21 {
        run.signal(LARGE, "x".repeat(100_000)).await.unwrap();
    }
    run.signal(GO, ()).await.unwrap();
    let stuck = described("it is stuck", &run, |run| run.stuck.is_some()).await.stuck.unwrap();
    assert_eq!(stuck.cause, StuckCause::Limit, "{}", stuck.reason);
    for part in ["21 signals", "at most 2000000 bytes", "take signals before"] {
        assert!(stuck.reason.contains(part), "{}", stuck.reason);
    }
    run.terminate("seen").await.unwrap();
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_that_a_run_can_hand_on_reach_the_next_one() {
    let namespace = Namespace::new();
    let app = namespace.serve(ignores_signals).await;
    let run = app.start(ignores_signals, 0).id("run").await.unwrap();
    for _ in 0..19 {
        run.signal(LARGE, "x".repeat(100_000)).await.unwrap();
    }
    run.signal(GO, ()).await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(1));
    app.shutdown().await;
}

#[workflow]
async fn abandons(ctx: Ctx) -> Result<bool, Failure> {
    let call = ctx.call(slow, ()).start_to_close(secs(60)).cancel_type(CancelType::Abandon);
    Ok(matches!(ctx.race(call, ctx.next_signal(GO)).await?, Second(())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_has_abandoned_an_activity_ends() {
    let namespace = Namespace::new();
    let app = namespace.serve((abandons, slow)).await;
    let run = app.start(abandons, ()).id("run").await.unwrap();
    run.signal(GO, ()).await.unwrap();
    assert_eq!(within("it ends", run.result()).await, Ok(true));
    app.stop().await;
}

/// Continues as a run that cannot be played to its end.
#[workflow]
async fn gets_stuck_later(ctx: Ctx, round: u64) -> Result<(), Failure> {
    if round == 0 {
        ctx.next_signal(GO).await?;
        return Err(ctx.continue_as_new(gets_stuck_later, 1));
    }
    ctx.call(slow, ()).start_to_close(secs(60)).detach();
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn caller_who_waits_for_a_result_learns_that_a_later_run_of_the_chain_is_stuck() {
    let namespace = Namespace::new();
    let app = namespace.serve((gets_stuck_later, slow)).await;
    let run = app.start(gets_stuck_later, 0).id("run").await.unwrap();
    let waiting = tokio::spawn({
        let run = run.clone();
        async move { run.result_or_stuck().await }
    });
    described("it waits", &run, |run| run.turns == 1).await;
    run.signal(GO, ()).await.unwrap();
    let told = within("it is told", waiting).await.unwrap().unwrap_err();
    assert!(matches!(&told, Error::Client(ClientError::Stuck(why)) if why.contains("was detached")), "{told}");
    run.latest().terminate("seen").await.unwrap();
    app.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_of_a_workflow_that_is_not_served_is_stuck_and_names_those_that_are() {
    let namespace = Namespace::new();
    let app = namespace.serve(promised).await;
    let run = app.start_raw("unheard-of", []).await.unwrap();
    let stuck = described("it is stuck", &run, |run| run.stuck.is_some()).await.stuck.unwrap();
    assert_eq!(stuck.cause, StuckCause::MissingWorkflow);
    assert!(stuck.reason.contains("\"unheard-of\"") && stuck.reason.contains("promised"), "{}", stuck.reason);
    run.terminate("seen").await.unwrap();
    app.shutdown().await;
}
