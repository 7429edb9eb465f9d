//! Nothing but the transcript decides: generated programs, shuffled results, other threads.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "threads and hash order are what is shown not to matter"
)]

use std::collections::HashMap;

use crate::kit::*;

/// A program: branches, each with steps that are activities, timers, states or yields.
fn program(seed: u64) -> Workflow {
    workflow(move |ctx: Ctx, _| async move {
        let mut shape = Rng::from_seed(seed);
        let branches: Vec<Vec<u64>> =
            (0..1 + shape.below(4)).map(|_| (0..1 + shape.below(5)).map(|_| shape.below(6)).collect()).collect();
        let branches = branches.into_iter().enumerate().map(|(branch, steps)| {
            let ctx = ctx.clone();
            async move {
                for (number, step) in steps.into_iter().enumerate() {
                    match step {
                        0 => ctx.yield_now().await,
                        1 => ctx.set_state(format!("{branch}.{number}"), ctx.uuid().to_string()),
                        2 => drop(ctx.race(ctx.activity("A", ""), ctx.sleep(secs(step))).await?),
                        3 => drop(ctx.sleep(secs(number as u64))),
                        _ => drop(ctx.activity(format!("{branch}.{number}"), "").await?),
                    }
                }
                nothing()
            }
        });
        let results: Result<Vec<_>, Failure> = ctx.parallel(branches).await.into_iter().collect();
        results.map(|all| all.len().to_string().into())
    })
}

/// Plays a program to its end; its seed decides which results come together, and in which order.
fn record(seed: u64) -> Transcript {
    let mut play = Player::new(program(seed), Pins::default(), Mode::Whole);
    let mut world = Rng::from_seed(!seed);
    play.play("start");
    for _ in 0..64 {
        let mut pending = play.run().inspect().pending;
        if pending.is_empty() {
            break;
        }
        let mut jobs = Vec::new();
        for _ in 0..1 + world.below(pending.len() as u64) {
            let one = pending.remove(world.below(pending.len() as u64) as usize);
            let resolution = match one.operation {
                Operation::Timer => Resolution::Timer,
                _ => Resolution::Activity(Outcome::Completed("".into())),
            };
            jobs.push(Job::resolve(one.seq, resolution));
        }
        let now = Timestamp::default().after(secs(play.transcript.turns.len() as u64));
        play.activate(Turn::new(now, jobs));
    }
    assert!(play.printed.contains("complete"), "seed {seed} ends:\n{}", play.printed);
    play.transcript
}

/// S0-1, S0-48, C-42: two hundred generated programs, each played again 25 times, decide the same to the byte, with seqs
/// from zero without a gap.
#[test]
fn a_recorded_program_decides_the_same_every_time() {
    for seed in 0..200 {
        let recorded = record(seed);
        let seqs: Vec<u64> = recorded
            .turns
            .iter()
            .flat_map(|turn| &turn.commands)
            .filter_map(|c| c.kind.seq())
            .map(|seq| seq.0)
            .collect();
        assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
        let bytes = recorded.to_bytes();
        let options = RunOptions { double_play: false, ..RunOptions::default() };
        for _ in 0..25 {
            let mut run = Run::new(program(seed), options.clone()).unwrap();
            let mut again = Transcript::new("kit", Pins::default());
            for record in &recorded.turns {
                // Played live and not against the record, so that equality is the program's own doing.
                let turn = Turn::new(record.now, record.jobs.clone());
                let Completion::Turn(done) = run.activate(Activation::Turn(turn.clone())) else {
                    panic!("seed {seed}")
                };
                again.record(&turn, &done, &record.build);
            }
            assert_eq!(recorded.diff(&again), None, "seed {seed}");
            assert_eq!(again.to_bytes(), bytes);
        }
    }
}

/// S0-1: and another program does not pass for it.
#[test]
fn another_program_does_not_replay_a_record() {
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut refused = 0;
    for seed in 0..200 {
        let recorded = record(seed);
        // Two seeds may well draw one shape; then they are one program.
        if let Err(failed) = recorded.replay(&program(seed + 1), options.clone()) {
            assert!(matches!(*failed.error, ActivationError::Nondeterminism(_)), "seed {seed}: {failed}");
            refused += 1;
        }
    }
    assert!(refused > 190, "{refused} of 200");
}

/// S0-2, S0-36: sixty-four threads at once, each playing all turns on a thread of its own and giving up the processor
/// between them, decide what one thread decided.
#[test]
fn sixty_four_threads_decide_what_one_thread_decided() {
    let recorded: Vec<Transcript> = (0..8).map(record).collect();
    std::thread::scope(|scope| {
        for number in 0..64 {
            let recorded = &recorded;
            scope.spawn(move || {
                for (seed, recorded) in recorded.iter().enumerate() {
                    let mut run = Run::new(program(seed as u64), RunOptions::default()).unwrap();
                    for record in &recorded.turns {
                        let turn = Turn::new(record.now, record.jobs.clone());
                        let play = || run.activate(Activation::Turn(turn));
                        // Every other run changes threads with each of its turns.
                        let completion = if number % 2 == 0 {
                            play()
                        } else {
                            std::thread::scope(|s| s.spawn(play).join().unwrap())
                        };
                        assert_eq!(commands(&completion), record.commands);
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
}

/// S0-2, S0-36, C-12, T-16: a hash map is dropped in another order in every process and every run of a program; what it held
/// is cancelled in the order of seqs all the same.
#[test]
fn a_dropped_hash_map_does_not_decide_an_order() {
    async fn hashed(ctx: Ctx, _: Payload) -> Done {
        let map: HashMap<u32, Activity> = (0..50).map(|n| (n, ctx.activity(n.to_string(), ""))).collect();
        ctx.activity("A", "").await?;
        drop(map);
        ctx.activity("B", "").await
    }
    for _ in 0..5 {
        let played = play(hashed, "start\nresolve A");
        let cancels: Vec<String> = (0..50).map(|seq| format!("[] cancel #{seq}")).collect();
        assert_eq!(decided(&played.transcript)[51..101], cancels);
        assert_eq!(decided(&played.transcript)[101], "[] activity B");
    }
}

/// S2-24, S4-11, S0-7, S0-31: a join in 25 orders of results, one by one and all together: the same commands each time.
#[test]
fn a_join_gives_one_history_in_every_order_of_results() {
    async fn five(ctx: Ctx, _: Payload) -> Done {
        let branches = (0..5).map(|n| {
            let ctx = ctx.clone();
            async move {
                let value = ctx.activity(n.to_string(), "").await?;
                ctx.set_state(n.to_string(), value.clone());
                Ok::<_, Failure>(value)
            }
        });
        let all: Result<Vec<_>, _> = ctx.parallel(branches).await.into_iter().collect();
        Ok(all?.iter().map(ToString::to_string).collect::<String>().into())
    }
    let mut shuffle = Rng::from_seed(4);
    for _ in 0..25 {
        let mut order: Vec<u32> = (0..5).collect();
        for place in (1..5).rev() {
            order.swap(place, shuffle.below(place as u64 + 1) as usize);
        }
        let jobs: Vec<String> = order.iter().map(|n| format!("resolve {n} = {n}")).collect();
        let together = play(five, &format!("start\n{}", jobs.join(", "))).transcript;
        let states = (0..5).map(|n| format!("[p{n}] state {n} = {n}"));
        let expected: Vec<String> = states.chain(["[] complete 01234".to_owned()]).collect();
        assert_eq!(decided(&together)[5..], expected, "{order:?}");
        let one_by_one = play(five, &format!("start\n{}", jobs.join("\n"))).transcript;
        assert_eq!(decided(&one_by_one).last(), Some(&"[] complete 01234".to_owned()), "{order:?}");
    }
}
