//! What a turn costs: resolving one awaited operation and emitting the next command, scheduling, replaying, playing
//! twice.

#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dacapo_core::{
    Activation, Completion, Ctx, Failure, Job, Outcome, Payload, Resolution, Run, RunOptions, Seq, Start, Timestamp,
    Transcript, Turn, Workflow,
};

/// As many activities as the input says, one after the other.
async fn chain(ctx: Ctx, input: Vec<Payload>) -> Result<Payload, Failure> {
    let steps: u64 = input[0].as_text().and_then(|text| text.parse().ok()).expect("a number of steps");
    for _ in 0..steps {
        ctx.activity("echo", "{\"order\":42}").await?;
    }
    Ok(Payload::empty())
}

fn start(steps: u64) -> Turn {
    let start = Start {
        workflow: "chain".into(),
        workflow_id: "bench".into(),
        run_id: "run".into(),
        queue: "bench".into(),
        input: vec![steps.to_string().into()],
        ..Start::default()
    };
    Turn::new(Timestamp::default(), vec![Job::Start(Box::new(start))])
}

fn resolve(seq: u64) -> Turn {
    let resolution = Resolution::Activity(Outcome::Completed("{\"order\":42}".into()));
    Turn::new(Timestamp::from_millis(seq), vec![Job::resolve(Seq(seq), resolution)])
}

fn run(workflow: &Workflow, double_play: bool) -> Run {
    let options = RunOptions { double_play, ..RunOptions::default() };
    Run::new(workflow.clone(), options).expect("a run")
}

fn activate(run: &mut Run, turn: Turn) -> usize {
    match run.activate(Activation::Turn(turn)) {
        Completion::Turn(done) => done.commands.len(),
        other => panic!("{other:?}"),
    }
}

fn turns(c: &mut Criterion) {
    let workflow = Workflow::new("chain", chain);
    for (name, double_play) in [("turn: resolve one, emit the next", false), ("the same, played twice", true)] {
        c.bench_function(name, |b| {
            let mut run = run(&workflow, double_play);
            activate(&mut run, start(u64::MAX));
            let mut seq = 0;
            b.iter_batched(
                || {
                    seq += 1;
                    resolve(seq - 1)
                },
                |turn| activate(&mut run, turn),
                BatchSize::SmallInput,
            );
        });
    }
}

/// One turn that schedules a thousand activities: what a single call of `ctx.activity` costs.
fn scheduling(c: &mut Criterion) {
    let workflow = Workflow::new("chain", |ctx: Ctx, _| async move {
        for _ in 0..1000 {
            ctx.activity("echo", "{\"order\":42}").detach();
        }
        ctx.next_signal("never").await?;
        Ok(Payload::empty())
    });
    let mut group = c.benchmark_group("schedule");
    group.throughput(Throughput::Elements(1000));
    group.bench_function("1,000 activities in one turn", |b| {
        b.iter_batched(|| run(&workflow, false), |mut run| activate(&mut run, start(0)), BatchSize::SmallInput);
    });
    group.finish();
}

fn replay(c: &mut Criterion) {
    const STEPS: u64 = 10_000;
    let workflow = Workflow::new("chain", chain);
    let mut transcript = Transcript::new("chain", Default::default());
    let mut live = run(&workflow, false);
    for turn in std::iter::once(start(STEPS)).chain((0..STEPS).map(resolve)) {
        match live.activate(Activation::Turn(turn.clone())) {
            Completion::Turn(done) => transcript.record(&turn, &done, &"bench".into()),
            other => panic!("{other:?}"),
        }
    }
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(STEPS));
    group.sample_size(20);
    group.bench_function("a run of 10,000 activities", |b| {
        b.iter_batched(
            || transcript.turns.clone(),
            |turns| {
                let mut run = run(&workflow, false);
                turns.into_iter().map(|record| activate(&mut run, record.into_turn())).sum::<usize>()
            },
            BatchSize::LargeInput,
        );
    });
    let bytes: Vec<Vec<u8>> = transcript.turns.iter().map(dacapo_core::TurnRecord::to_bytes).collect();
    group.bench_function("the same, from the bytes a store keeps", |b| {
        b.iter(|| {
            let mut run = run(&workflow, false);
            let turns = bytes.iter().map(|bytes| dacapo_core::TurnRecord::from_bytes(bytes).expect("a record"));
            turns.map(|record| activate(&mut run, record.into_turn())).sum::<usize>()
        });
    });
    group.finish();
}

criterion_group!(benches, turns, scheduling, replay);
criterion_main!(benches);
