//! Races of three to eight futures.

use crate::kit::*;

async fn three(ctx: Ctx, _: Payload) -> Done {
    let text = match ctx.race_of((ctx.activity("A", ""), ctx.next_signal("S"), ctx.sleep(secs(5)))).await? {
        OneOf3::First(value) => format!("activity {value}"),
        OneOf3::Second(signal) => format!("signal {}", signal.input[0]),
        OneOf3::Third(()) => "timer".to_owned(),
    };
    Ok(text.into())
}

/// Each side wins with its own value when its result is the first, wherever it is listed; the losers are cancelled.
#[test]
fn side_of_three_whose_result_came_first_wins_and_the_losers_are_cancelled() {
    check(
        three,
        "start
         resolve A = a",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] cancel #1  [] complete activity a
        "#]],
    );
    check(
        three,
        "start
         signal S = s",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] cancel #0  [] cancel #1  [] complete signal s
        "#]],
    );
    check(
        three,
        "start
         fire, signal S = s, resolve A = a",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] complete timer
        "#]],
    );
}

#[test]
fn side_of_three_that_fails_first_fails_the_race() {
    check(
        three,
        "start
         fail A: broken",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] cancel #1  [] fail: broken
        "#]],
    );
}

#[test]
fn cancelled_race_of_three_fails_with_the_cancellation() {
    check(
        three,
        "start
         cancel: enough",
        expect![[r#"
            turn 0  [] activity A  [] timer 5s
            turn 1  [] cancel #0  [] cancel #1  [] cancelled: enough
        "#]],
    );
}

#[test]
fn replay_stops_at_a_changed_side_of_a_race_of_three() {
    async fn changed(ctx: Ctx, _: Payload) -> Done {
        ctx.race_of((ctx.activity("A", ""), ctx.next_signal("S"), ctx.sleep(secs(6)))).await?;
        nothing()
    }
    check_replay(
        three,
        "start
         signal S = s",
        changed,
        expect![[r#"
            failed: nondeterminism: a command differs from what was recorded
              --> turn 0, command 1
               |
               | recorded: timer 5s #1, timer(0), the root unit, at crates/core/tests/rules/race_of.rs:6:84, by build kit
               | new:      timer 6s #1, timer(0), the root unit, at crates/core/tests/rules/race_of.rs:75:71
               |
               | duration: recorded 5s, new 6s
               |
               = help: the run stays open. Bring back the code that recorded it, or guard the new path with `ctx.patched`; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again
        "#]],
    );
}

#[test]
fn side_of_several_steps_counts_by_its_last_result_in_a_race_of_four() {
    async fn four(ctx: Ctx, _: Payload) -> Done {
        let steps = async {
            ctx.activity("A", "").await?;
            ctx.activity("B", "").await
        };
        let race = ctx.race_of((steps, ctx.activity("C", ""), ctx.activity("D", ""), ctx.sleep(secs(5))));
        let winner = match race.await? {
            OneOf4::First(_) => "steps",
            OneOf4::Second(_) => "C",
            OneOf4::Third(_) => "D",
            OneOf4::Fourth(()) => "timer",
        };
        Ok(winner.into())
    }
    check(
        four,
        "start
         resolve A
         resolve B, resolve D",
        expect![[r#"
            turn 0  [] activity C  [] activity D  [] timer 5s  [] activity A
            turn 1  [] activity B
            turn 2  [] cancel #0  [] cancel #2  [] complete steps
        "#]],
    );
    check(
        four,
        "start
         resolve A, resolve D",
        expect![[r#"
            turn 0  [] activity C  [] activity D  [] timer 5s  [] activity A
            turn 1  [] activity B  [] cancel #0  [] cancel #2  [] cancel #4  [] complete D
        "#]],
    );
}

#[test]
fn each_of_eight_sides_can_win() {
    async fn eight(ctx: Ctx, _: Payload) -> Done {
        let side = |n: u32| ctx.activity(format!("A{n}"), "");
        let race = ctx.race_of((side(0), side(1), side(2), side(3), side(4), side(5), side(6), side(7)));
        let (place, value) = match race.await? {
            OneOf8::First(value) => (0, value),
            OneOf8::Second(value) => (1, value),
            OneOf8::Third(value) => (2, value),
            OneOf8::Fourth(value) => (3, value),
            OneOf8::Fifth(value) => (4, value),
            OneOf8::Sixth(value) => (5, value),
            OneOf8::Seventh(value) => (6, value),
            OneOf8::Eighth(value) => (7, value),
        };
        Ok(format!("{place} {value}").into())
    }
    for place in 0..8 {
        let printed = play(eight, &format!("start\nresolve A{place} = v")).printed;
        assert!(printed.contains(&format!("complete {place} v")), "{printed}");
        assert_eq!(printed.matches("cancel #").count(), 7, "{printed}");
    }
}
