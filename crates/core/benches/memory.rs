//! What a run at rest weighs: a hundred thousand runs, each with one pending timer.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a program of its own"
)]

use std::time::Duration;

use dacapo_core::{
    Activation, Completion, Ctx, Failure, Job, Payload, Run, RunOptions, Start, Timestamp, Turn, Workflow,
};

async fn sleeper(ctx: Ctx, _: Vec<Payload>) -> Result<Payload, Failure> {
    ctx.sleep(Duration::from_secs(3600)).await?;
    Ok(Payload::empty())
}

fn at_rest(workflow: &Workflow, number: usize) -> Run {
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(workflow.clone(), options).expect("a run");
    let start = Start {
        workflow: "sleeper".into(),
        workflow_id: format!("sleeper-{number}").into(),
        run_id: format!("5d1c0000-0000-4000-8000-{number:012}").into(),
        queue: "bench".into(),
        input: vec!["{\"order\":42}".into()],
        ..Start::default()
    };
    let turn = Turn::new(Timestamp::default(), vec![Job::Start(Box::new(start))]);
    match run.activate(Activation::Turn(turn)) {
        Completion::Turn(done) => assert_eq!(done.commands.len(), 1),
        other => panic!("{other:?}"),
    }
    run
}

/// The size of the future that the compiler made of the workflow function.
fn future_size() -> usize {
    fn size<P>(_: impl Fn(Ctx, Vec<Payload>) -> P) -> usize {
        size_of::<P>()
    }
    size(sleeper)
}

/// Resident bytes of this process, as Linux counts them.
fn resident() -> Option<usize> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(statm.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}

fn main() {
    let runs = if std::env::args().any(|arg| arg == "--bench") { 100_000 } else { 10 };
    let workflow = Workflow::new("sleeper", sleeper);
    let before = resident();
    let resting: Vec<Run> = (0..runs).map(|number| at_rest(&workflow, number)).collect();
    match (before, resident()) {
        (Some(before), Some(after)) => {
            let each = (after - before) / resting.len();
            println!(
                "{runs} runs at rest: {each} bytes each, of which {} are the workflow's own future",
                future_size()
            );
        }
        _ => println!("this platform does not tell how much memory a process uses"),
    }
}
