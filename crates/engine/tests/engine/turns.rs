//! Turns: what causes one, what it holds, what it leaves in the store.

use dacapo_core::{Ctx, Failure, Payload, Seq};
use dacapo_engine::{Cache, Options, RunId};
use dacapo_testkit::{Simulation, expect};

use crate::kit::{
    Gate, Serve, World, completed, describe, options, over_every_cache, over_every_cache_and_restart, payload, resolve,
    rows, secs, signal, text, turns,
};

async fn two_steps(ctx: Ctx, input: Payload) -> Result<Payload, Failure> {
    let first = ctx.activity("double", input).await?;
    ctx.activity("double", first).await
}

fn doubling() -> Options {
    options().workflow("two steps", two_steps).activity("double", |_, input| {
        let number: u64 = text(&input).parse().unwrap();
        Ok(payload((number * 2).to_string()))
    })
}

/// S2-6 S2-19
#[test]
fn two_activities_in_sequence_make_exactly_three_turns() {
    over_every_cache(doubling, |sim| {
        sim.start("two steps", "a", "3").unwrap();
        assert_eq!(sim.result("a"), completed("12"));
        let expected = expect![[r#"
            0 at 0ns: start two steps -> activity double
            1 at 0ns: resolve #0 activity -> activity double
            2 at 0ns: resolve #1 activity -> complete 12
        "#]];
        expected.assert_eq(&turns(sim, "a"));
        vec!["a"]
    });
}

/// S2-17
#[test]
fn commands_of_a_turn_are_stored_with_it_before_they_are_carried_out() {
    let gate = Gate::default();
    let shared_gate = gate.clone();
    let serve = move || {
        let gate = shared_gate.clone();
        options().workflow("two steps", two_steps).waiting("double", move |_, _| gate.pass())
    };
    over_every_cache(serve, |sim| {
        gate.shut();
        sim.start("two steps", "a", "3").unwrap();
        sim.settle();
        let run = describe(sim, "a").run;
        let tasks = sim.store().tasks_of(run).unwrap();
        let task = |task: &dacapo_store::TaskRow| (task.run, task.seq, task.turn, task.position, task.attempt);
        assert_eq!(tasks.iter().map(task).collect::<Vec<_>>(), [(run, Seq(0), 0, 0, 1)]);
        let expected = expect![[r#"
            0 at 0ns: start two steps -> activity double
        "#]];
        expected.assert_eq(&turns(sim, "a"));
        gate.open(Ok("6".into()));
        assert_eq!(sim.result("a"), completed("6"));
        assert_eq!(rows(sim, "a"), (0, 0, 0));
        vec!["a"]
    });
}

/// S2-3 S2-7
#[test]
fn without_a_cache_every_turn_begins_at_the_start_of_the_function_and_with_one_none_does() {
    let played = |cache| {
        let entries = World::default();
        let noted = entries.clone();
        let mut options = doubling().cache(cache).workflow("counted", move |ctx, input| {
            noted.note("entered");
            two_steps(ctx, input)
        });
        options.double_play = false;
        let sim = Simulation::new(options);
        sim.start("counted", "a", "3").unwrap();
        assert_eq!(sim.result("a"), completed("12"));
        (entries.count(), sim.history("a"))
    };
    let (replayed, cached) = (played(Cache::AtMost(0)), played(Cache::AtMost(10)));
    assert_eq!((replayed.0, cached.0), (3, 1));
    assert_eq!(replayed.1, cached.1);
}

async fn waits_for_all_sorts(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    ctx.activity("double", "1").await?;
    ctx.sleep(secs(5)).await?;
    let signal = ctx.next_signal("go").await?;
    Ok(signal.input[0].clone())
}

/// S2-1 S2-2
#[test]
fn a_start_a_result_a_timer_and_a_message_cause_one_turn_each_and_nothing_else_does() {
    let serve = || doubling().workflow("all sorts", waits_for_all_sorts);
    over_every_cache(serve, |sim| {
        sim.start("all sorts", "a", "").unwrap();
        sim.advance(secs(3_600));
        assert_eq!(describe(sim, "a").turns, 3);
        let before = sim.moments();
        sim.advance(secs(3_600));
        assert_eq!(sim.moments(), before, "in an hour without messages nothing is written and nothing runs");
        signal(sim, "a", "go", "on");
        assert_eq!(sim.result("a"), completed("on"));
        let expected = expect![[r#"
            0 at 0ns: start all sorts -> activity double
            1 at 0ns: resolve #0 activity -> timer 5s
            2 at 5s: resolve #1 timer ->
            3 at 7200s: signal go -> complete on
        "#]];
        expected.assert_eq(&turns(sim, "a"));
        vec!["a"]
    });
}

/// S2-4 S2-26
#[test]
fn code_runs_until_it_waits_for_what_is_not_there() {
    async fn both(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let (first, second) = (ctx.activity("double", "1"), ctx.activity("double", "2"));
        let (first, second) = (first.await?, second.await?);
        Ok(payload(format!("{first} {second}")))
    }
    over_every_cache(
        || doubling().workflow("both", both),
        |sim| {
            sim.start("both", "a", "").unwrap();
            assert_eq!(sim.result("a"), completed("2 4"));
            let first = turns(sim, "a").lines().next().map(str::to_owned);
            assert_eq!(first.as_deref(), Some("0 at 0ns: start both -> activity double, activity double"));
            vec!["a"]
        },
    );
}

async fn fan_out(ctx: Ctx, count: Payload) -> Result<Payload, Failure> {
    let count: u64 = text(&count).parse().unwrap();
    let all = ctx.join((0..count).map(|number| ctx.activity("double", number.to_string()))).await;
    let sum: u64 = all.into_iter().map(|one| text(&one.unwrap()).parse::<u64>().unwrap()).sum();
    Ok(payload(sum.to_string()))
}

/// S4-31 T-23
#[test]
fn workflow_joins_one_five_a_hundred_and_ten_thousand_activities() {
    for count in [1_u64, 4, 5, 100, 10_000] {
        let mut options = doubling().workflow("fan out", fan_out);
        options.double_play = count <= 100;
        let sim = Simulation::new(options);
        sim.start("fan out", "a", count.to_string()).unwrap();
        assert_eq!(sim.result("a"), completed(&(count * (count - 1)).to_string()));
        assert_eq!(rows(&sim, "a"), (0, 0, 0));
    }
}

/// S4-10
#[test]
fn a_turn_is_one_write_however_many_commands_it_holds() {
    for count in [1, 5, 100] {
        let sim =
            Simulation::new(options().workflow("fan out", fan_out).waiting("double", |_, _| std::future::pending()));
        sim.start("fan out", "a", count.to_string()).unwrap();
        // Before and after the one commit; attempts begin later.
        assert_eq!(sim.moments(), 2, "{count} commands");
        let run = describe(&sim, "a").run;
        assert_eq!(sim.store().tasks_of(run).unwrap().len(), count);
    }
}

/// S2-8
#[test]
fn with_one_completion_a_turn_every_completion_is_a_turn_of_its_own() {
    let serve = || {
        let mut options = doubling().workflow("fan out", fan_out);
        options.completions_per_turn = 1;
        options
    };
    over_every_cache(serve, |sim| {
        sim.start("fan out", "a", "4").unwrap();
        assert_eq!(sim.result("a"), completed("12"));
        let expected = expect![[r#"
            0 at 0ns: start fan out -> activity double, activity double, activity double, activity double
            1 at 0ns: resolve #0 activity ->
            2 at 0ns: resolve #1 activity ->
            3 at 0ns: resolve #2 activity ->
            4 at 0ns: resolve #3 activity -> complete 12
        "#]];
        expected.assert_eq(&turns(sim, "a"));
        vec!["a"]
    });
}

/// S0-37
#[test]
fn however_much_comes_at_once_a_run_plays_one_turn_after_the_other() {
    async fn adds(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let mut sum = 0;
        for _ in 0..20 {
            let signal = ctx.next_signal("add").await?;
            sum += text(&signal.input[0]).parse::<u64>().unwrap();
            ctx.activity("double", "1").detach();
        }
        Ok(payload(sum.to_string()))
    }
    over_every_cache(
        || doubling().workflow("adds", adds),
        |sim| {
            sim.start("adds", "a", "").unwrap();
            let target = RunId::of("a");
            let sends = (1..=20).map(|number| {
                let signal = crate::kit::signal_of("add", number.to_string());
                let (engine, target) = (sim.engine().clone(), target.clone());
                Box::pin(async move { engine.signal(&target, signal, None).await })
            });
            // All are on their way before any is answered.
            let mut sends: Vec<_> = sends.collect();
            for send in &mut sends {
                let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(send.as_mut().poll(&mut cx).is_pending());
            }
            assert_eq!(sim.result("a"), completed("210"));
            for send in sends {
                assert_eq!(sim.wait(send), Ok(()));
            }
            let transcript = sim.engine().reader().history(&target).unwrap();
            let numbers: Vec<u64> = transcript.turns.iter().map(|turn| turn.number).collect();
            assert_eq!(numbers, (0..transcript.turns.len() as u64).collect::<Vec<_>>());
            let came: Vec<String> =
                transcript.turns.iter().flat_map(|turn| &turn.jobs).map(|job| job.to_string()).collect();
            assert_eq!(came.iter().filter(|job| *job == "signal add").count(), 20);
            vec!["a"]
        },
    );
}

/// S0-45
#[test]
fn a_wait_of_three_days_outlives_many_unrelated_turns() {
    async fn patient(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let waits: [std::pin::Pin<Box<dyn Future<Output = String> + Send>>; 2] = [
            Box::pin({
                let ctx = ctx.clone();
                async move { format!("{:?}", ctx.promise("approval").await.map(|value| text(&value))) }
            }),
            Box::pin({
                let ctx = ctx.clone();
                async move {
                    for _ in 0..72 {
                        ctx.sleep(secs(3_600)).await.unwrap();
                    }
                    "slept".to_owned()
                }
            }),
        ];
        let outputs = ctx.parallel(waits).await;
        Ok(payload(outputs.join(", ")))
    }
    over_every_cache_and_restart(
        || options().workflow("patient", patient),
        |sim| {
            sim.start("patient", "a", "").unwrap();
            sim.advance(secs(2 * 86_400));
            let sim = sim.restart();
            sim.advance(secs(86_400));
            assert_eq!(describe(&sim, "a").turns, 73);
            assert_eq!(resolve(&sim, "a", "approval", Ok("yes".into())), Ok(()));
            assert_eq!(sim.result("a"), completed("Ok(\"yes\"), slept"));
            (sim, vec!["a"])
        },
    );
}

/// S2-13 S4-3 T-21 T-22
#[test]
fn results_reach_the_same_operations_over_a_hundred_restarts() {
    async fn collects(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let mut all = Vec::new();
        for number in 0..100 {
            let (odd, even) = (ctx.activity("name", "odd"), ctx.activity("name", "even"));
            all.push(format!("{number}{}{}", odd.await?, even.await?));
            ctx.sleep(secs(1)).await?;
        }
        Ok(payload(all.join(" ")))
    }
    let world = World::default();
    let noted = world.clone();
    let mut options = options().workflow("collects", collects).activity("name", move |ctx, input| {
        noted.note(ctx.info().activity_id.to_string());
        Ok(input)
    });
    options.double_play = false;
    let mut sim = Simulation::new(options);
    sim.start("collects", "a", "").unwrap();
    for _ in 0..100 {
        sim.settle();
        sim = sim.restart();
        sim.advance(secs(1));
    }
    let expected: Vec<String> = (0..100).map(|number| format!("{number}oddeven")).collect();
    assert_eq!(sim.result("a"), completed(&expected.join(" ")));
    let ids: std::collections::BTreeSet<String> = world.notes().into_iter().collect();
    assert_eq!((ids.len(), world.count()), (200, 200), "every operation has its own id and ran once");
}

/// S4-22 S4-52
#[test]
fn a_run_that_waits_says_what_for() {
    async fn waits(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
        let (activity, timer, promise) = (ctx.activity("slow", ""), ctx.sleep(secs(60)), ctx.promise("approval"));
        ctx.join([ctx.activity("slow", "")]).await;
        drop((activity, timer, promise));
        Ok(Payload::empty())
    }
    let serve = || options().workflow("waits", waits).waiting("slow", |_, _| std::future::pending());
    over_every_cache(serve, |sim| {
        sim.start("waits", "a", "").unwrap();
        sim.settle();
        let before = sim.moments();
        let seen = sim.wait(sim.engine().inspect(&RunId::of("a"))).unwrap();
        let waits: Vec<&str> = seen.units.iter().flat_map(|unit| &unit.waits).map(|wait| wait.what.as_str()).collect();
        assert_eq!(waits, ["activity slow #3"]);
        let pending: Vec<String> = seen
            .pending
            .iter()
            .map(|pending| format!("{} {} {}", pending.operation, pending.name, pending.seq))
            .collect();
        assert_eq!(pending, ["activity slow #0", "timer 1m #1", "promise approval #2", "activity slow #3"]);
        assert_eq!(sim.moments(), before, "looking writes nothing");
        vec!["a"]
    });
}

/// S2-12: two runs with two activities of one type each. A completion by the token of one of them resolves that one, also
/// after the run was loaded again, and nothing else.
#[test]
fn completion_reaches_only_the_operation_whose_token_it_names() {
    let world = World::default();
    let serve = || {
        let tokens = world.clone();
        options()
            .workflow("asks twice", |ctx: Ctx, input| async move {
                let ask = |which: &str| ctx.activity("ask", format!("{} {which}", text(&input)));
                let (place, first, others) = ctx.select_all([ask("first"), ask("second")]).await;
                let (_, second, _) = others.await;
                Ok(payload(format!("{place}: {} then {}", text(&first?), text(&second?))))
            })
            .activity("ask", move |ctx, input| {
                tokens.note(format!("{} {}", text(&input), ctx.completion_token()));
                Err(ctx.complete_later())
            })
    };
    over_every_cache_and_restart(serve, |sim| {
        let before = world.count();
        sim.start("asks twice", "a", "a").unwrap();
        sim.start("asks twice", "b", "b").unwrap();
        sim.settle();
        let notes = world.notes().split_off(before);
        let complete = |sim: &Simulation, which: &str| {
            let token = notes.iter().find_map(|note| note.strip_prefix(which)).expect("it was asked").trim().to_owned();
            sim.wait(sim.engine().complete(&token, Ok(payload(which)))).unwrap();
            sim.settle();
        };
        let pending = |sim: &Simulation, id| describe(sim, id).pending.iter().map(|open| open.seq).collect::<Vec<_>>();
        complete(&sim, "b second");
        assert_eq!((pending(&sim, "a"), pending(&sim, "b")), (vec![Seq(0), Seq(1)], vec![Seq(0)]));
        let sim = sim.restart();
        sim.settle();
        complete(&sim, "a second");
        complete(&sim, "a first");
        complete(&sim, "b first");
        assert_eq!(sim.result("a"), completed("1: a second then a first"));
        assert_eq!(sim.result("b"), completed("1: b second then b first"));
        (sim, vec!["a", "b"])
    });
}

/// S2-18: the run is not in memory when its first step completes. It is played again, the wait finds its result, and the
/// second step is scheduled in that very turn.
#[test]
fn completion_replays_the_run_and_schedules_the_next_step_in_the_same_turn() {
    let (gate, entries) = (Gate::default(), World::default());
    let (shared_gate, noted) = (gate.clone(), entries.clone());
    let mut options = options().cache(Cache::AtMost(0)).workflow("two steps", move |ctx, input| {
        noted.note("entered");
        two_steps(ctx, input)
    });
    options.double_play = false;
    // The second step never ends.
    let shut = Gate::default();
    let double = move |_, input| if text(&input) == "3" { shared_gate.pass() } else { shut.pass() };
    let sim = Simulation::new(options.waiting("double", double));
    sim.start("two steps", "a", "3").unwrap();
    sim.settle();
    assert_eq!(turns(&sim, "a"), "0 at 0ns: start two steps -> activity double\n");
    let (run, before) = (describe(&sim, "a").run, entries.count());
    gate.open(Ok("6".into()));
    sim.settle();
    let expected = expect![[r#"
        0 at 0ns: start two steps -> activity double
        1 at 0ns: resolve #0 activity -> activity double
    "#]];
    expected.assert_eq(&turns(&sim, "a"));
    assert_eq!(entries.count(), before + 1, "it was played again from the beginning, once");
    let tasks = sim.store().tasks_of(run).unwrap();
    assert_eq!(tasks.iter().map(|task| (task.seq, task.turn)).collect::<Vec<_>>(), [(Seq(1), 1)]);
}

/// What `ctx.info().history` says is the size of the turns before this one, as the store holds them.
#[test]
fn history_bytes_are_the_sizes_of_the_stored_records_before_the_turn() {
    let serve = || {
        options().workflow("measures", |ctx: Ctx, _| async move {
            let mut seen = Vec::new();
            for _ in 0..3 {
                seen.push(ctx.info().map(|info| (info.history.length, info.history.bytes)).unwrap_or_default());
                ctx.next_signal("go").await?;
            }
            Ok(payload(format!("{seen:?}")))
        })
    };
    over_every_cache(serve, |sim| {
        sim.start("measures", "a", "").unwrap();
        for size in [1, 100, 10_000] {
            sim.settle();
            signal(sim, "a", "go", "x".repeat(size));
        }
        let run = describe(sim, "a").run;
        let (status, result) = sim.result("a");
        assert_eq!(status, dacapo_store::Status::Completed);
        let mut sizes = Vec::new();
        let mut show = |_: u64, record: &[u8]| {
            sizes.push(record.len() as u64);
            std::ops::ControlFlow::Continue(())
        };
        sim.store().turns(run, 0, &mut show).unwrap();
        assert_eq!(sizes.len(), 4);
        assert!(sizes[1] > 0 && sizes[2] > sizes[1] + 90, "the payloads are in the records: {sizes:?}");
        // Events: the start; then one signal for each turn. No turn but the last decides anything.
        let expected = [(0, 0), (1, sizes[0]), (2, sizes[0] + sizes[1])];
        assert_eq!(text(&result.unwrap()), format!("{expected:?}"));
        vec!["a"]
    });
}

/// A timer that is due before the one that the engine waits for is waited for instead.
#[test]
fn earlier_timer_armed_behind_a_later_one_fires_first() {
    let serve = || {
        options().workflow("sleeps", |ctx: Ctx, input| async move {
            ctx.sleep(secs(text(&input).parse().unwrap_or_default())).await?;
            Ok(input)
        })
    };
    let sim = Simulation::new(serve());
    let begun = sim.now();
    sim.start("sleeps", "later", "100").unwrap();
    sim.settle();
    assert_eq!(sim.next_wake(), Some(begun.after(secs(100))));
    sim.start("sleeps", "earlier", "10").unwrap();
    sim.settle();
    assert_eq!(sim.next_wake(), Some(begun.after(secs(10))), "the alarm is moved to the earlier timer");
    sim.start("sleeps", "latest", "200").unwrap();
    sim.settle();
    assert_eq!(sim.next_wake(), Some(begun.after(secs(10))), "and not to a later one");
    let is_open = |id| describe(&sim, id).status == dacapo_store::Status::Open;
    sim.advance(secs(10));
    assert_eq!((is_open("earlier"), is_open("later"), is_open("latest")), (false, true, true));
    sim.advance(secs(90));
    assert_eq!((is_open("later"), is_open("latest")), (false, true));
    assert_eq!(sim.result("latest"), completed("200"));
}
