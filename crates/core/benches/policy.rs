//! What a choice costs: among a hundred enabled actions, and in a round of ten thousand units.
//!
//! The bars: under 1 µs for a deterministic choice among a hundred, under 3 µs for a random one with its log entry.
//! One iteration makes many choices: the throughput is what one choice costs, turned over.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dacapo_core::{Action, PolicyKind, PolicyOptions, Rng, Scheduler, Seg, UnitId};

/// How many choices one scheduler makes before it is replaced, so that its log is that of a long turn and not endless.
const PICKS: u64 = 10_000;

fn scheduler(kind: &PolicyKind) -> Scheduler {
    let options = PolicyOptions { seed: Some(1), ..PolicyOptions::default() };
    let scheduler = Scheduler::new(kind.clone(), options).expect("a policy that exists");
    assert_eq!(scheduler.is_deterministic(), *kind == PolicyKind::Deterministic);
    scheduler
}

fn units(n: u32) -> Vec<UnitId> {
    (0..n).map(|index| UnitId::root().child(Seg::P(index))).collect()
}

fn actions(n: u32) -> Vec<Action> {
    units(n).into_iter().map(Action::Unit).collect()
}

/// S1-56, S1-57, S1-69: 10,000 times one of a hundred, by the list.
fn choose(c: &mut Criterion) {
    let sorted = actions(100);
    let mut shuffled = sorted.clone();
    let mut rng = Rng::from_seed(1);
    for place in (1..shuffled.len()).rev() {
        shuffled.swap(place, rng.below(place as u64 + 1) as usize);
    }
    let mut group = c.benchmark_group("choose 1 of 100");
    group.throughput(Throughput::Elements(PICKS));
    for kind in [PolicyKind::Deterministic, PolicyKind::Random] {
        for (order, list) in [("sorted", &sorted), ("shuffled", &shuffled)] {
            group.bench_function(format!("{kind}, {order}"), |b| {
                b.iter_batched_ref(
                    || scheduler(&kind),
                    |scheduler| {
                        for _ in 0..PICKS {
                            black_box(scheduler.choose(black_box(list)).expect("a choice"));
                        }
                        let logged = if kind == PolicyKind::Random { PICKS } else { 0 };
                        assert_eq!(scheduler.get_log().len(), logged);
                    },
                    BatchSize::LargeInput,
                );
            });
        }
    }
    // The worst case for the log: no set is like the one before it, so each is written.
    let sets: Vec<Vec<Action>> =
        (0..100).map(|without| [&sorted[..without], &sorted[without + 1..]].concat()).collect();
    group.bench_function("random, every set new", |b| {
        b.iter_batched_ref(
            || scheduler(&PolicyKind::Random),
            |scheduler| {
                for pick in 0..PICKS as usize {
                    black_box(scheduler.choose(black_box(&sets[pick % sets.len()])).expect("a choice"));
                }
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// S1-57, S1-69: the executor's way; the time is per unit.
fn rounds(c: &mut Criterion) {
    for n in [100, 10_000] {
        let mut group = c.benchmark_group(format!("round of {n}"));
        group.throughput(Throughput::Elements(u64::from(n)));
        for kind in [PolicyKind::Deterministic, PolicyKind::Random] {
            group.bench_function(kind.to_string(), |b| {
                b.iter_batched(
                    || (scheduler(&kind), units(n)),
                    |(scheduler, units)| play(scheduler, units),
                    BatchSize::LargeInput,
                );
            });
        }
        let mut recording = scheduler(&PolicyKind::Random);
        recording.begin_round(units(n)).expect("sorted units");
        while recording.next_unit(&mut |_| true).expect("a unit").is_some() {}
        let replay = PolicyKind::Replay(recording.get_log().clone());
        group.bench_function("replay", |b| {
            b.iter_batched(
                || (scheduler(&replay), units(n)),
                |(scheduler, units)| play(scheduler, units),
                BatchSize::LargeInput,
            );
        });
        group.finish();
    }
}

fn play(mut scheduler: Scheduler, units: Vec<UnitId>) -> Scheduler {
    let n = units.len() as u64;
    scheduler.begin_round(units).expect("sorted units");
    let mut steps = 0;
    while let Some(unit) = scheduler.next_unit(&mut |_| true).expect("a unit") {
        black_box(unit);
        steps += 1;
    }
    assert_eq!(steps, n);
    assert_eq!(scheduler.get_log().len(), if scheduler.is_deterministic() { 0 } else { n });
    scheduler
}

/// S1-57: one of three equals, with its log entry.
fn branches(c: &mut Criterion) {
    let mut group = c.benchmark_group("pick 1 of 3 branches");
    group.throughput(Throughput::Elements(PICKS));
    for kind in [PolicyKind::Deterministic, PolicyKind::Random] {
        group.bench_function(kind.to_string(), |b| {
            b.iter_batched_ref(
                || scheduler(&kind),
                |scheduler| (0..PICKS).for_each(|_| drop(black_box(scheduler.pick_branch(3)))),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn config() -> Criterion {
    let (warm_up, measured) = (Duration::from_millis(500), Duration::from_secs(2));
    Criterion::default().sample_size(20).warm_up_time(warm_up).measurement_time(measured)
}

criterion_group! { name = benches; config = config(); targets = choose, rounds, branches }
criterion_main!(benches);
