//! Units: what they are, what they are called, and what can be seen of them.

use crate::kit::*;

/// S0-5, S0-6: every sort of unit, each with the id that says what it is.
#[test]
fn every_sort_of_unit_decides_under_its_own_id() {
    async fn everything(ctx: Ctx, _: Payload) -> Done {
        let named = |name: &'static str| {
            let ctx = ctx.clone();
            async move { ctx.activity(name, "").await }
        };
        let inner = ctx.clone();
        let nested = async move {
            let branches = ["nested 0", "nested 1"].map(|name| inner.activity(name, ""));
            inner.activity("branch", "").detach();
            inner.parallel(branches).await;
            nothing()
        };
        drop(ctx.launch(named("launched")));
        drop(ctx.parallel([named("never")]));
        let branches = ctx.parallel([nested]);
        let signals = ctx.clone();
        ctx.on_signal("S", move |_| {
            let ctx = signals.clone();
            async move { ctx.activity("signal handler", "").await.map(drop) }
        });
        let updates = ctx.clone();
        ctx.on_update(
            "U",
            |_| Ok(()),
            move |_| {
                let ctx = updates.clone();
                async move { ctx.activity("update handler", "").await }
            },
        );
        ctx.activity("root", "").detach();
        let phase = ctx.clone();
        ctx.phase(&ctx.state(()))
            .on_signal("P", move |(), _| {
                let ctx = phase.clone();
                Handled::with(async move { ctx.activity("async handler", "").await })
            })
            .await?;
        branches.await;
        nothing()
    }
    let played = play(everything, "start, signal S, update U u1, signal P, signal S");
    let mut decided = decided(&played.transcript);
    decided.sort();
    expect![[r#"
        [
            "[] activity root",
            "[h0] activity signal handler",
            "[h1] accept update u1",
            "[h1] activity update handler",
            "[h2,a0] activity async handler",
            "[h3] activity signal handler",
            "[l0] activity launched",
            "[p2] activity branch",
            "[p2] activity nested 0",
            "[p2] activity nested 1",
        ]
    "#]]
    .assert_debug_eq(&decided);
}

/// S0-7: in whichever order the results come, one by one or together, the units are called the same.
#[test]
fn timing_does_not_decide_what_a_unit_is_called() {
    async fn nested(ctx: Ctx, _: Payload) -> Done {
        let outer = (0..2).map(|outer| {
            let ctx = ctx.clone();
            async move {
                ctx.activity(format!("outer {outer}"), "").await.unwrap();
                let inner = (0..2).map(|inner| {
                    let ctx = ctx.clone();
                    async move { ctx.activity(format!("inner {outer}.{inner}"), "").await }
                });
                ctx.parallel(inner).await;
            }
        });
        ctx.parallel(outer).await;
        nothing()
    }
    let scripts = [
        "start\nresolve outer 0, resolve outer 1",
        "start\nresolve outer 1, resolve outer 0",
        "start\nresolve outer 0\nresolve inner 0.1\nresolve outer 1",
        "start\nresolve outer 1\nresolve inner 1.0\nresolve outer 0",
    ];
    for script in scripts {
        let mut decided = decided(&play(nested, script).transcript);
        decided.sort();
        assert_eq!(
            decided,
            [
                "[p0,p0] activity inner 0.0",
                "[p0,p1] activity inner 0.1",
                "[p0] activity outer 0",
                "[p1,p0] activity inner 1.0",
                "[p1,p1] activity inner 1.1",
                "[p1] activity outer 1"
            ]
        );
    }
}

/// S0-6: no id is used twice: an index counts every child its parent ever started.
#[test]
fn a_unit_never_gets_the_id_of_one_that_is_gone() {
    async fn again(ctx: Ctx, _: Payload) -> Done {
        for _ in 0..2 {
            let inner = ctx.clone();
            ctx.launch(async move {
                inner.set_state("launched", "1");
                Ok(())
            })
            .await?;
            let inner = ctx.clone();
            ctx.parallel([async move { inner.set_state("branch", "1") }]).await;
        }
        nothing()
    }
    check(
        again,
        "start",
        expect![[r#"
            turn 0  [l0] state launched = 1  [p1] state branch = 1  [l2] state launched = 1  [p3] state branch = 1  [] complete
        "#]],
    );
}

/// S0-8, S0-43: what an executor knows of its run, after each of three activations.
#[test]
fn a_run_at_rest_can_be_looked_into() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let inner = ctx.clone();
        drop(ctx.launch(async move {
            inner.sleep(secs(60)).await?;
            Ok(())
        }));
        ctx.activity("A", "").await?;
        ctx.next_signal("go").await?;
        nothing()
    }
    let mut run = Run::new(workflow(two), RunOptions::default()).unwrap();
    let show = |run: &Run| {
        let Inspection { turn, round, running, runnable, units, pending, next_seq } = run.inspect();
        let units: Vec<_> =
            units.iter().map(|u| (u.id.to_string(), u.waits.iter().map(|w| w.what.clone()).collect())).collect();
        let pending: Vec<_> =
            pending.iter().map(|p| (p.seq.0, p.name.to_string(), p.unit.clone().unwrap().to_string())).collect();
        (turn, round, running, runnable, units, pending, next_seq.0)
    };
    let unit = |id: &str, waits: &[&str]| (id.to_owned(), waits.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
    let op = |seq, name: &str, unit: &str| (seq, name.to_owned(), unit.to_owned());
    assert_eq!(show(&run), (0, 0, None, vec![], vec![], vec![], 0));
    run.activate(turn(vec![start(7)]));
    let units = vec![unit("[]", &["activity A #0"]), unit("[l0]", &["timer 1m #1"])];
    assert_eq!(show(&run), (1, 2, None, vec![], units, vec![op(0, "A", "[]"), op(1, "1m", "[l0]")], 2));
    run.activate(turn(vec![resolved(0, "")]));
    let units = vec![unit("[]", &["signal go"]), unit("[l0]", &["timer 1m #1"])];
    assert_eq!(show(&run), (2, 3, None, vec![], units, vec![op(1, "1m", "[l0]")], 2));
    run.activate(turn(vec![Job::Signal(Box::new(Signal { name: "go".into(), ..Signal::default() }))]));
    assert_eq!(run.inspect().units, []);
}

/// S0-9, S4-30: a ctx may go anywhere, for it can only ask; the executor decides, and only for the unit that has its go.
#[test]
fn a_ctx_can_be_sent_and_shared_and_decides_nothing_without_the_turn() {
    fn send_and_sync<T: Send + Sync + 'static>(value: T) -> T {
        value
    }
    async fn leak(ctx: Ctx, out: Arc<Mutex<Option<Ctx>>>) -> Done {
        *out.lock().unwrap() = Some(send_and_sync(ctx.clone()));
        ctx.activity("A", "").await
    }
    let out = Arc::new(Mutex::new(None));
    let leaked = out.clone();
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(workflow(move |ctx, _| leak(ctx, leaked.clone())), options).unwrap();
    run.activate(turn(vec![start(7)]));
    let before = run.inspect();
    let ctx = out.lock().unwrap().take().unwrap();
    let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(ctx.activity("B", ""))));
    assert!(called.is_err());
    assert_eq!(run.inspect(), before, "nothing was numbered, appended or made runnable");
    assert!(matches!(run.activate(turn(vec![resolved(0, "")])), Completion::Failed(_)));
}

/// S2-29, S4-24: a workflow is an async function of ctx and input; what it asks for is named by strings here, with options
/// or without, and by types in the crate above.
#[test]
fn a_workflow_is_an_async_function() {
    async fn greet(ctx: Ctx, name: Payload) -> Result<Payload, Failure> {
        let plain = ctx.activity("hello", name.clone()).await?;
        let args = ctx.activity_args("hello", vec![name, plain]).queue("slow").start_to_close(secs(10)).await?;
        ctx.child("farewell", args).queue("slow").await
    }
    check(
        greet,
        "start = ada
         resolve hello = one
         resolve hello = two
         started farewell = r, resolve farewell = bye",
        expect![[r#"
            turn 0  [] activity hello
            turn 1  [] activity hello
            turn 2  [] child farewell
            turn 3  [] complete bye
        "#]],
    );
}
