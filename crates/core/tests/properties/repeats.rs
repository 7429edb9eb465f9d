//! The same again: many times, on many threads, under every order of wake-ups, on two machines.
#![allow(clippy::disallowed_methods, reason = "whether threads matter can only be shown with threads")]

use std::collections::BTreeSet;
use std::time::Duration;

use dacapo_core::{
    Activation, CommandKind, Completion, Ctx, Failure, Job, OperationId, Outcome, Payload, Pins, PolicySpec,
    Resolution, Rng, Seq, Timestamp, Transcript, Turn, UnitId, Workflow,
};

use crate::coverage::Marks;
use crate::examine::{Case, check_all, programs, replays_byte_equal};
use crate::interpret::WORKFLOW;
use crate::world::{BUILD, Recording, new_run, options, play_turn, record, start};

/// S0-1
#[test]
fn two_hundred_recorded_programs_replay_the_same_twenty_five_times() {
    check_all(2_000_000..2_000_200, |case, marks| {
        let recording = case.record(marks)?;
        (0..25).try_for_each(|_| replays_byte_equal(case, &recording.transcript))
    });
}

/// S0-2
#[test]
fn the_same_programs_decide_the_same_on_one_thread_and_on_sixty_four() {
    let recorded = |seed| {
        let case = Case::draw(seed);
        let recording = case.record(&Marks::default()).expect("a program that plays");
        (case, recording)
    };
    let alone: Vec<_> = (3_000_000..3_000_000 + programs(64)).map(recorded).collect();
    let play_again = |thread: usize, case: &Case, recording: &Recording| {
        let mut rng = Rng::from_seed(thread as u64);
        let mut run = new_run(&case.workflow(), &case.pins);
        for (turn, done) in &recording.turns {
            (0..rng.below(4)).for_each(|_| std::thread::yield_now());
            assert_eq!(play_turn(&mut run, turn.clone()).as_ref(), Ok(done), "seed {}", case.seed);
        }
        replays_byte_equal(case, &recording.transcript).expect("what was recorded replays");
    };
    std::thread::scope(|scope| {
        for thread in 0..64 {
            let (alone, play_again) = (&alone, &play_again);
            scope.spawn(move || {
                let mine = alone.iter().skip(thread % 8).step_by(8);
                mine.for_each(|(case, recording)| play_again(thread, case, recording));
            });
        }
    });
}

/// A run may play each of its turns on another thread.
///
/// S0-2
#[test]
fn a_run_decides_the_same_when_every_turn_has_a_thread_of_its_own() {
    check_all(4_000_000..4_000_000 + programs(100), |case, marks| {
        let recording = case.record(marks)?;
        let mut run = new_run(&case.workflow(), &case.pins);
        for (turn, done) in &recording.turns {
            let turn = turn.clone();
            let (next, again) = std::thread::spawn(move || {
                let again = play_turn(&mut run, turn);
                (run, again)
            })
            .join()
            .map_err(|_| "the thread panicked")?;
            run = next;
            if again? != *done {
                return Err("another thread decided otherwise".to_owned());
            }
        }
        Ok(())
    });
}

/// S0-7, S0-31
#[test]
fn unit_ids_and_the_order_of_units_do_not_follow_the_order_of_wake_ups() {
    const BRANCHES: u64 = 5;
    let branches = |ctx: Ctx, _: Vec<Payload>| async move {
        let branch = |index: u64| {
            let ctx = ctx.clone();
            async move {
                ctx.activity("first", index.to_string()).await?;
                let inner = |name: &'static str| {
                    let ctx = ctx.clone();
                    async move { ctx.activity(name, "").await }
                };
                ctx.parallel([inner("left"), inner("right")]).await;
                Ok::<_, Failure>(())
            }
        };
        ctx.parallel((0..BRANCHES).map(branch)).await;
        Ok(Payload::empty())
    };
    let workflow = Workflow::new(WORKFLOW, branches);
    let mut rng = Rng::from_seed(31);
    let mut seen: Option<Vec<(UnitId, CommandKind)>> = None;
    for _ in 0..200 {
        let mut run = new_run(&workflow, &Pins::default());
        play_turn(&mut run, Turn::new(Timestamp::default(), vec![start(7)])).expect("it starts");
        let mut order: Vec<u64> = (0..BRANCHES).collect();
        for place in (1..order.len()).rev() {
            order.swap(place, rng.below(place as u64 + 1) as usize);
        }
        let done = |seq: &u64| Job::resolve(Seq(*seq), Resolution::Activity(Outcome::Completed(Payload::empty())));
        let turn = Turn::new(Timestamp::default(), order.iter().map(done).collect());
        let done = play_turn(&mut run, turn).expect("it goes on");
        let commands: Vec<_> = done.commands.into_iter().map(|command| (command.unit, command.kind)).collect();
        assert_eq!(commands.len(), 2 * BRANCHES as usize);
        assert_eq!(*seen.get_or_insert_with(|| commands.clone()), commands, "woken in the order {order:?}");
    }
}

/// Whatever order the world resolves things in, a unit keeps its id and no id is used twice: the ledger of every
/// generated play checks it. Here the same program meets many worlds, and the commands of its first turn never change.
///
/// S0-7
#[test]
fn a_program_begins_the_same_in_every_world() {
    for seed in 0..programs(200) {
        let case = Case::draw(5_000_000 + seed);
        let first = |world: u64| {
            let recording = record(&case.program, world, &Pins::default(), &Marks::default()).expect("it plays");
            let commands = &recording.transcript.turns[0].commands;
            let plain = recording.transcript.turns[0].jobs.len() == 1;
            plain.then(|| commands.iter().map(|command| command.unit.clone()).collect::<Vec<_>>())
        };
        let begins: Vec<_> = (0..6).filter_map(first).collect();
        assert!(begins.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {begins:?}");
    }
}

/// S4-12, S4-17
#[test]
fn ids_follow_from_the_seed_and_the_seq_and_never_collide() {
    let ids = |seed: u64| (0..500_000).map(move |seq| OperationId::of(seed, Seq(seq)));
    let mut all: Vec<OperationId> = ids(1).chain(ids(2)).collect();
    assert!(ids(1).eq(all[..500_000].iter().copied()), "the same seed gives the same ids");
    all.sort();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "two operations have one id");
}

/// User randomness is drawn from streams of its own: a program with a draw more gets the same ids.
///
/// S4-12, S4-17
#[test]
fn a_draw_of_the_user_shifts_no_id() {
    let ids_with = |draws: u64| {
        let workflow = Workflow::new(WORKFLOW, move |ctx: Ctx, _| async move {
            for _ in 0..draws {
                ctx.random_u64();
                ctx.uuid();
            }
            ctx.activity("a", "").detach();
            ctx.sleep(Duration::from_secs(1)).detach();
            ctx.promise("p").await
        });
        let mut run = new_run(&workflow, &Pins::default());
        play_turn(&mut run, Turn::new(Timestamp::default(), vec![start(7)])).expect("it starts").commands
    };
    let kinds = |draws| ids_with(draws).into_iter().map(|command| command.kind).collect::<Vec<_>>();
    assert_eq!(kinds(0), kinds(3));
}

/// A random policy is free to pick, and what it picked is the log: the run replays from it, and without the log the same
/// seed draws it again.
///
/// S1-55
#[test]
fn a_random_run_replays_from_its_log_alone() {
    check_all(6_000_000..6_000_000 + programs(300), |case, marks| {
        let random = PolicySpec::Random { seed: case.seed.wrapping_mul(31) };
        let case = Case { pins: Pins { policy: random, ..case.pins.clone() }, ..case.clone() };
        let recording = case.record(marks)?;
        replays_byte_equal(&case, &recording.transcript)?;
        // Another seed in the pins makes no difference: all that was picked is in the log.
        let mut other: Transcript = recording.transcript.clone();
        other.pins.policy = PolicySpec::Random { seed: 1 };
        let mut run = new_run(&case.workflow(), &other.pins);
        for record in &other.turns {
            match run.activate(Activation::Turn(record.clone().into_turn())) {
                Completion::Turn(done) if done.commands == record.commands => {}
                answer => return Err(format!("another seed, and the log is answered with {answer:?}")),
            }
        }
        Ok(())
    });
}

/// S1-55
#[test]
fn a_random_policy_explores_orders_and_each_of_them_replays() {
    let branches = |ctx: Ctx, _: Vec<Payload>| async move {
        let branch = |index: u64| {
            let ctx = ctx.clone();
            async move { ctx.set_state("last", index.to_string()) }
        };
        ctx.parallel((0..4).map(branch)).await;
        Ok(ctx.get_state("last").unwrap_or_default())
    };
    let workflow = Workflow::new(WORKFLOW, branches);
    let mut orders = BTreeSet::new();
    for seed in 0..300 {
        let pins = Pins { policy: PolicySpec::Random { seed }, ..Pins::default() };
        let turn = Turn::new(Timestamp::default(), vec![start(7)]);
        let done = play_turn(&mut new_run(&workflow, &pins), turn.clone()).expect("it plays");
        let mut transcript = Transcript::new(WORKFLOW, pins.clone());
        transcript.record(&turn, &done, &BUILD);
        assert!(transcript.replay(&workflow, options(&pins, false)).is_ok(), "seed {seed}");
        orders.insert(done.commands.iter().map(|command| command.unit.to_string()).collect::<Vec<_>>());
    }
    assert_eq!(orders.len(), 24, "every order of four branches is found");
}
