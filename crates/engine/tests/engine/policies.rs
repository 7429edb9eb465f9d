//! Policies under the engine: the run's pinned policy picks, and what it picked holds for the run's life.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use dacapo_core::{Ctx, Enabled, Failure, Payload, Pins, Policy, PolicyError, PolicySpec};
use dacapo_engine::{Cache, Options};
use dacapo_store::Status;
use dacapo_testkit::{CACHES, Simulation};

use crate::kit::{
    NO_ROWS, Serve, World, completed, completed_empty, describe, options, over_every_cache,
    over_every_cache_and_restart, payload, query, rows, secs, signal, status, stuck, text,
};

/// Always the last of what is enabled.
struct Last;

impl Policy for Last {
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        Ok(enabled.len() - 1)
    }
}

/// So many branches: each says its number, waits for its work, chooses, and says its number again. The state, which can
/// be asked for at any time, is what was said and in which order.
async fn talk(ctx: Ctx, branches: usize) -> Result<Payload, Failure> {
    let said = ctx.state(Vec::new());
    let asked = said.clone();
    ctx.on_query("said", move |_| Ok(asked.read(|said: &Vec<String>| payload(said.join(" ")))));
    let branches = (0..branches).map(|number| {
        let (ctx, said) = (ctx.clone(), said.clone());
        async move {
            said.update(|said| said.push(number.to_string()));
            ctx.activity("work", number.to_string()).await.unwrap();
            let chosen = ctx.choose(3);
            said.update(|said| said.push(format!("{number}.{chosen}")));
        }
    });
    ctx.parallel(branches).await;
    ctx.sleep(secs(1)).await?;
    Ok(said.read(|said| payload(said.join(" "))))
}

fn talking(policy: PolicySpec, branches: usize) -> Options {
    let mut options =
        options().workflow("talk", move |ctx: Ctx, _| talk(ctx, branches)).activity("work", |_, input| Ok(input));
    options.pins.push(("talk".into(), Pins { policy, ..Pins::default() }));
    options.own_policy = Some(Arc::new(|| Box::new(Last)));
    options
}

fn own() -> PolicySpec {
    PolicySpec::Own { name: "last".into() }
}

/// S1-66: which unit goes and which branch is taken. There is no third thing that could be picked, and no other code that
/// picks.
#[test]
fn every_choice_of_a_run_is_made_by_its_policy() {
    let plays = [
        (PolicySpec::Deterministic, "0 1 2 0.0 1.0 2.0"),
        (own(), "2 1 0 2.2 1.2 0.2"),
        (PolicySpec::Random { seed: 1 }, "2 1 0 2.0 0.0 1.2"),
    ];
    for (policy, said) in plays {
        over_every_cache(
            || talking(policy.clone(), 3),
            |sim| {
                sim.start("talk", "a", "").unwrap();
                assert_eq!(sim.result("a"), completed(said), "{policy:?}");
                vec!["a"]
            },
        );
    }
}

/// S1-52: what is compared is what the units did, step by step, and what they left in the store.
#[test]
fn a_deterministic_run_of_a_hundred_steps_leaves_the_same_trace_twice() {
    let played = |cache| {
        let trace = World::default();
        let noted = trace.clone();
        let mut options =
            options().cache(cache).activity("work", |_, input| Ok(input)).workflow("steps", move |ctx: Ctx, _| {
                let noted = noted.clone();
                async move {
                    let branches = (0..5).map(|branch| {
                        let (ctx, noted) = (ctx.clone(), noted.clone());
                        async move {
                            for step in 0..20 {
                                noted.note(format!("{branch}.{step} {}", ctx.random()));
                                match (branch + step) % 3 {
                                    0 => ctx.yield_now().await,
                                    1 => drop(ctx.activity("work", step.to_string()).await),
                                    _ => drop(ctx.sleep(secs(branch + step)).await),
                                }
                            }
                        }
                    });
                    ctx.parallel(branches).await;
                    Ok(Payload::empty())
                }
            });
        options.double_play = false;
        let sim = Simulation::new(options);
        sim.start("steps", "a", "").unwrap();
        assert_eq!(sim.result("a"), completed_empty());
        (trace.notes(), sim.history("a"))
    };
    let kept = Cache::AtMost(10);
    let (first, second) = (played(kept), played(kept));
    assert_eq!(first.0.len(), 100, "in memory each step is taken once");
    assert_eq!(first, second);
    for cache in CACHES {
        let again = played(cache);
        let last: BTreeSet<&String> = again.0.iter().collect();
        assert_eq!(last, first.0.iter().collect(), "{cache:?}: however often a step is taken, it is the same");
        assert_eq!(again.1, first.1, "{cache:?}");
    }
}

/// S1-53: a run that has ended is asked for its state: it is played again from its log, in processes whose new runs are
/// given to other policies, and comes to the state it ended with.
#[test]
fn a_run_that_was_played_at_random_comes_to_the_same_state_when_it_is_replayed() {
    let states = RefCell::new(BTreeSet::new());
    for seed in 0..5 {
        let serve = || talking(PolicySpec::Random { seed }, 4);
        over_every_cache_and_restart(serve, |mut sim| {
            let cache = sim.options().cache;
            sim.start("talk", "a", "").unwrap();
            let ended = text(&sim.result("a").1.unwrap());
            for policy in [PolicySpec::Deterministic, PolicySpec::Random { seed: 99 }, own()] {
                sim = sim.redeploy(talking(policy, 4).cache(cache));
                assert_eq!(query(&sim, "a", "said").as_ref(), Ok(&ended), "seed {seed}");
            }
            states.borrow_mut().insert(ended);
            (sim, vec!["a"])
        });
    }
    assert_eq!(states.borrow().len(), 5, "other seeds come to other states");
}

/// S1-59: written down here once, so that a build that compares ids in another way is found out: by letters `p10` would
/// come before `p2`. The process changes between the rounds.
#[test]
fn units_are_compared_alike_in_every_process_and_every_build() {
    let plays = [
        (PolicySpec::Deterministic, "0 1 2 3 4 5 6 7 8 9 10 11 0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0"),
        (own(), "11 10 9 8 7 6 5 4 3 2 1 0 11.2 10.2 9.2 8.2 7.2 6.2 5.2 4.2 3.2 2.2 1.2 0.2"),
        (PolicySpec::Random { seed: 7 }, "5 0 4 3 9 1 2 7 6 10 11 8 5.1 8.2 10.0 4.1 1.0 0.2 11.2 3.0 9.2 6.0 7.0 2.0"),
    ];
    for (policy, said) in plays {
        let serve = || talking(policy.clone(), 12);
        over_every_cache_and_restart(serve, |sim| {
            sim.start("talk", "a", "").unwrap();
            let sim = sim.restart();
            sim.settle();
            let sim = sim.restart();
            assert_eq!(sim.result("a"), completed(said), "{policy:?}");
            (sim, vec!["a"])
        });
    }
}

/// S1-68: code with a branch less, with a choice more and with a choice less than its log knows. The run stays open, says
/// what was expected, has lost nothing, and goes on with the code that recorded it.
#[test]
fn a_run_whose_log_does_not_fit_its_code_stays_open_and_says_so_until_the_code_is_back() {
    let choosing = |branches: usize, choices: u32| {
        let mut options = options().workflow("chooses", move |ctx: Ctx, _| async move {
            ctx.parallel((0..branches).map(|_| std::future::ready(()))).await;
            (0..choices).for_each(|_| assert_eq!(ctx.choose(1), 0));
            ctx.next_signal("go").await?;
            Ok("went on".into())
        });
        options.pins.push(("chooses".into(), Pins { policy: PolicySpec::Random { seed: 1 }, ..Pins::default() }));
        options
    };
    let changes = [
        (2, 2, "chose among {[p0], [p1], [p2]}, now enabled is {[p0], [p1]}"),
        (3, 3, "the choice log ends after 7 choices and the program asks for one more"),
        (3, 1, "the turn ended after 6 choices and its recording holds 1 more"),
    ];
    for (branches, choices, said) in changes {
        over_every_cache_and_restart(
            || choosing(3, 2),
            |sim| {
                let cache = sim.options().cache;
                sim.start("chooses", "a", "").unwrap();
                let sim = sim.redeploy(choosing(branches, choices).cache(cache));
                signal(&sim, "a", "go", "");
                sim.settle();
                let (reason, attempts, retry) = stuck(&sim, "a");
                assert_eq!((attempts, retry, reason.contains(said)), (1, secs(1), true), "{reason}");
                assert_eq!((status(&sim, "a"), describe(&sim, "a").turns), (Status::Open, 1));
                assert_eq!(rows(&sim, "a").2, 1, "the signal waits");
                let sim = sim.redeploy(choosing(3, 2).cache(cache));
                assert_eq!(sim.result("a"), completed("went on"));
                assert_eq!(rows(&sim, "a"), NO_ROWS);
                (sim, vec!["a"])
            },
        );
    }
}

/// S1-68
#[test]
fn run_whose_policy_is_not_provided_waits_for_a_program_that_provides_it() {
    let unknown = || Options { own_policy: None, ..talking(own(), 2) };
    over_every_cache_and_restart(unknown, |sim| {
        let cache = sim.options().cache;
        sim.start("talk", "a", "").unwrap();
        sim.settle();
        assert!(stuck(&sim, "a").0.contains("there is no policy \"last\""), "{:?}", stuck(&sim, "a"));
        assert_eq!((status(&sim, "a"), describe(&sim, "a").turns), (Status::Open, 0));
        let sim = sim.redeploy(talking(own(), 2).cache(cache));
        assert_eq!(sim.result("a"), completed("1 0 1.2 0.2"));
        (sim, vec!["a"])
    });
}
