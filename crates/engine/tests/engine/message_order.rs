//! Messages are handled in the order in which they were acknowledged, however few turns they come in.

use std::pin::pin;
use std::task::{Context, Waker};

use dacapo_core::{Ctx, Failure, Order, Payload, Pins, StateCell};
use dacapo_engine::{NewStart, Options, RunId, UpdateStage, WaitFor};
use dacapo_testkit::Simulation;

use crate::kit::{
    Serve, completed, options, over_every_cache, payload, secs, signal, signal_of, text, turns, update_of,
};

fn add(sum: &StateCell<u64>, input: &[Payload]) -> String {
    let amount: u64 = text(&input[0]).parse().unwrap_or_default();
    sum.update(|sum| {
        *sum += amount;
        sum.to_string()
    })
}

/// Adds what signals and updates bring, and returns the sum when it is told to finish.
async fn account(ctx: Ctx, _: Payload) -> Result<Payload, Failure> {
    let sum = ctx.state(0);
    let inside = sum.clone();
    ctx.on_signal("deposit", move |signal| {
        add(&inside, &signal.input);
        async { Ok(()) }
    });
    let inside = sum.clone();
    ctx.on_update(
        "deposit",
        |_| Ok(()),
        move |update| {
            let sum = add(&inside, &update.input);
            async { Ok(payload(sum)) }
        },
    );
    ctx.next_signal("finish").await?;
    Ok(payload(sum.read(u64::to_string)))
}

fn serving() -> Options {
    options().workflow("account", account)
}

/// C-48
#[test]
fn delayed_run_that_gets_all_messages_in_its_first_turn_handles_them_before_the_finish() {
    over_every_cache(serving, |sim| {
        let new = NewStart { workflow: "account".into(), workflow_id: "a".into(), ..NewStart::default() };
        sim.wait(sim.engine().start(NewStart { delay: Some(secs(100)), ..new })).unwrap();
        for amount in ["1", "2", "3", "4", "5"] {
            signal(sim, "a", "deposit", amount);
        }
        signal(sim, "a", "finish", "");
        assert_eq!(sim.result("a"), completed("15"));
        assert_eq!(turns(sim, "a").lines().count(), 1, "all of them came in the first turn");
        vec!["a"]
    });
}

/// C-48: a process was down, or a turn was slow, and both messages were acknowledged meanwhile.
#[test]
fn update_answered_in_the_turn_that_finishes_the_run_is_in_its_result() {
    let pinned = |order| {
        let mut options = serving();
        options.pins.push(("account".into(), Pins { order, ..Pins::default() }));
        options
    };
    let outcome = |options| {
        let sim = Simulation::new(options);
        sim.start("account", "a", "").unwrap();
        sim.settle();
        let (engine, to) = (sim.engine(), RunId::of("a"));
        let mut update = pin!(engine.update(&to, update_of("u", "deposit", "7"), WaitFor::Completed));
        let mut finish = pin!(engine.signal(&to, signal_of("finish", ""), None));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(update.as_mut().poll(&mut cx).is_pending() && finish.as_mut().poll(&mut cx).is_pending());
        assert_eq!(sim.wait(update).unwrap(), UpdateStage::Completed(Ok(payload("7"))));
        sim.wait(finish).unwrap();
        assert_eq!(turns(&sim, "a").lines().count(), 2, "the start, and one turn for both messages");
        sim.result("a")
    };
    assert_eq!(outcome(serving()), completed("7"), "by default");
    assert_eq!(outcome(pinned(Order::HandlersFirst)), completed("7"));
    assert_eq!(outcome(pinned(Order::RootFirst)), completed("0"), "the root goes first, as the run is pinned to");
}
