//! Seqs: taken at the call, dense, never used twice, and only by what can be resolved or cancelled.

use futures::FutureExt;

use crate::kit::*;

fn seqs(transcript: &Transcript) -> Vec<u64> {
    let commands = transcript.turns.iter().flat_map(|turn| &turn.commands);
    commands.filter_map(|command| command.kind.seq()).map(|seq| seq.0).collect()
}

/// C-2, S2-10, S2-11, S4-1, S4-19, S4-49: `a` and `b` are awaited the other way round and get their own results; `c` is
/// dropped without a look, and is scheduled and cancelled all the same.
#[test]
fn calls_take_their_place_at_once_whatever_becomes_of_their_futures() {
    async fn stored(ctx: Ctx, _: Payload) -> Done {
        let a = ctx.activity("A", "");
        let b = ctx.activity("B", "");
        drop(ctx.activity("C", ""));
        let b = b.await?;
        let a = a.await?;
        Ok(format!("{a} {b}").into())
    }
    check(
        stored,
        "start
         resolve A = a
         resolve B = b",
        expect![[r#"
            turn 0  [] activity A  [] activity B  [] activity C  [] cancel #2
            turn 1
            turn 2  [] complete a b
        "#]],
    );
}

/// S2-10, S4-25, C-34: a timer that is only kept is started, and a detached activity is scheduled and never cancelled.
#[test]
fn operation_that_is_never_awaited_is_started_all_the_same() {
    async fn keep(ctx: Ctx, _: Payload) -> Done {
        let timer = ctx.sleep(secs(30));
        ctx.activity("audit", "").detach();
        ctx.activity("A", "").await?;
        drop(timer);
        nothing()
    }
    check(
        keep,
        "start
         resolve A",
        expect![[r#"
            turn 0  [] timer 30s  [] activity audit  [] activity A
            turn 1  [] cancel #0  [] complete
        "#]],
    );
}

async fn all_kinds(ctx: Ctx, _: Payload) -> Done {
    let target = || Target::workflow("other");
    ctx.set_state("key", "value");
    let activity = ctx.activity("A", "");
    ctx.set_memo([("note".into(), None)]);
    let timer = ctx.sleep(secs(1));
    ctx.patched("patch");
    let child = ctx.child("C", "");
    let local = ctx.local_activity("L", "");
    let run = ctx.side_effect("R", || async { nothing() });
    let signal = ctx.signal_external(target(), "S", "");
    let cancel = ctx.cancel_external(target(), "enough");
    let nexus = ctx.nexus("endpoint", "service", "operation", "");
    let promise = ctx.promise("P");
    let both = ctx.activity("B", "");
    ctx.set_attrs([("city".into(), None)]);
    let _open = (activity, timer, child, local, run, signal, cancel, nexus, promise, both);
    ctx.next_signal("never").await?;
    nothing()
}

/// C-29, C-42, S0-48, S4-15, S4-19: everything that can be resolved is numbered from zero without gaps, nothing else is,
/// and all of it stands in one order, that of the calls.
#[test]
fn only_what_can_be_resolved_takes_a_seq_and_all_stands_in_call_order() {
    let played = play(all_kinds, "start");
    expect![[r#"
        turn 0  [] state key = value  [] activity A  [] memo note  [] timer 1s  [] patch patch  [] child C  [] local activity L  [] side effect R  [] signal external S to other  [] cancel external other  [] nexus service/operation  [] promise P  [] activity B  [] search attributes city
    "#]]
    .assert_eq(&played.printed);
    assert_eq!(seqs(&played.transcript), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/// S4-20: what a turn decided leaves with it, once.
#[test]
fn the_commands_of_a_turn_leave_with_it_and_are_gone() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        ctx.activity("A", "").await?;
        ctx.activity("B", "").await
    }
    let mut run = Run::new(workflow(two), RunOptions::default()).unwrap();
    let first = run.activate(turn(vec![start(7)]));
    let idle = run.activate(turn(vec![Job::Patch { id: "other".into() }]));
    let second = run.activate(turn(vec![resolved(0, "")]));
    let names = |completion| commands(completion).iter().map(|c| c.kind.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&first), ["activity A"]);
    assert_eq!(names(&idle), [""; 0]);
    assert_eq!(names(&second), ["activity B"]);
}

/// S0-48, S0-49, T-22, C-29: seqs go on where they stopped, in memory and after the run was built again. They once began
/// again at one, and the store took the second half of a run for the first.
#[test]
fn seqs_go_on_after_an_eviction() {
    async fn chain(ctx: Ctx, _: Payload) -> Done {
        for n in 0..6 {
            ctx.activity(n.to_string(), "").await?;
        }
        nothing()
    }
    for mode in [Mode::Whole, Mode::Evicted] {
        let mut play = Player::new(workflow(chain), Pins::default(), mode);
        play.play("start\nresolve 0\nresolve 1\nevict\nresolve 2\nresolve 3\nresolve 4\nresolve 5");
        assert_eq!(seqs(&play.transcript), [0, 1, 2, 3, 4, 5], "{mode:?}");
    }
}

/// S0-56, S0-73, S2-11
#[test]
fn a_result_wakes_only_the_unit_that_awaits_its_seq() {
    async fn three(ctx: Ctx, trace: Trace) -> Done {
        let branches = (0..3).map(|branch| {
            let (ctx, trace) = (ctx.clone(), trace.clone());
            let mut activity = ctx.activity("A", "");
            std::future::poll_fn(move |cx| {
                trace.note(branch.to_string());
                activity.poll_unpin(cx)
            })
        });
        let results: Result<Vec<_>, _> = ctx.parallel(branches).await.into_iter().collect();
        Ok(results?.iter().map(ToString::to_string).collect::<String>().into())
    }
    let trace = Trace::default();
    let traced = trace.clone();
    let mut played = play(move |ctx, _| three(ctx, traced.clone()), "start");
    assert_eq!(trace.take(), ["0", "1", "2"]);
    played.play("resolve #1 = b");
    assert_eq!(trace.take(), ["1"], "no other unit was polled");
    played.play("resolve #2 = c\nresolve #0 = a");
    assert_eq!(trace.take(), ["2", "0"]);
    assert_eq!(decided(&played.transcript)[3], "[] complete abc");
}

/// S0-57: a second result for one seq is an error that changes nothing, whether it comes at once or later.
#[test]
fn a_second_result_for_a_seq_is_refused() {
    async fn two(ctx: Ctx, _: Payload) -> Done {
        let b = ctx.activity("B", "");
        ctx.activity("A", "").await?;
        b.await
    }
    let mut run = Run::new(workflow(two), RunOptions::default()).unwrap();
    run.activate(turn(vec![start(7)]));
    let refused = |completion| match completion {
        Completion::Failed(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let twice = "the activation does not fit the run: seq #1 was resolved before";
    assert_eq!(refused(run.activate(turn(vec![resolved(1, "a"), resolved(1, "b")]))), twice);
    run.activate(turn(vec![resolved(1, "a")]));
    assert_eq!(refused(run.activate(turn(vec![resolved(1, "b")]))), twice);
    run.activate(turn(vec![resolved(0, "b")]));
    let unknown = "the activation does not fit the run: no operation has seq #9";
    let mut other = Run::new(workflow(two), RunOptions::default()).unwrap();
    other.activate(turn(vec![start(7)]));
    assert_eq!(refused(other.activate(turn(vec![resolved(9, "")]))), unknown);
    let wrong = Job::resolve(Seq(0), Resolution::Timer);
    assert_eq!(
        refused(other.activate(turn(vec![wrong]))),
        "the activation does not fit the run: seq #0 is of kind activity, and its resolution of kind timer"
    );
    let last = other.activate(turn(vec![resolved(1, ""), resolved(0, "still here")]));
    assert_eq!(commands(&last)[0].kind.to_string(), "complete still here", "a refused job changed nothing");
}

/// S0-57: what was cancelled is remembered by seq, and each seq by itself.
#[test]
fn a_second_result_is_refused_whatever_else_was_cancelled() {
    async fn many(ctx: Ctx, _: Payload) -> Done {
        let kept = (0..200).map(|n| (n, ctx.activity("A", ""))).filter(|(n, _)| n % 7 > 0);
        ctx.join(kept.map(|(_, activity)| activity)).await;
        ctx.next_signal("end").await?;
        nothing()
    }
    let mut run = Run::new(workflow(many), RunOptions::default()).unwrap();
    run.activate(turn(vec![start(7)]));
    for seq in 0..200 {
        assert!(matches!(run.activate(turn(vec![resolved(seq, "")])), Completion::Turn(_)), "{seq}");
        let refused = matches!(run.activate(turn(vec![resolved(seq, "")])), Completion::Failed(_));
        assert_eq!(refused, seq % 7 > 0, "{seq}");
    }
}

/// S0-57, C-12, T-3: the result of what was cancelled comes late and is ignored. A cancelled timer that fired all the same
/// was once taken for nondeterminism.
#[test]
fn a_late_result_of_what_was_cancelled_is_ignored() {
    async fn fickle(ctx: Ctx, _: Payload) -> Done {
        drop(ctx.sleep(secs(5)));
        drop(ctx.activity("A", ""));
        drop(ctx.child("C", ""));
        ctx.activity("detached", "").detach();
        ctx.activity("B", "").await
    }
    let mut played = play(fickle, "start");
    let late = |seq, resolution| Job::resolve(Seq(seq), resolution);
    let done = || Outcome::Completed("late".into());
    let jobs = vec![
        late(0, Resolution::Timer),
        late(1, Resolution::Activity(done())),
        late(2, Resolution::ChildStarted(StartOutcome::As("run".into()))),
        late(2, Resolution::Child(done())),
        late(3, Resolution::Activity(done())),
    ];
    played.activate(Turn::new(Timestamp::default().after(secs(1)), jobs));
    played.play("evict\nresolve B = on time");
    expect![[r#"
        turn 0  [] timer 5s  [] cancel #0  [] activity A  [] cancel #1  [] child C  [] cancel #2  [] activity detached  [] activity B
        turn 1
        evicted
        turn 2  [] complete on time
    "#]]
    .assert_eq(&played.printed);
}
