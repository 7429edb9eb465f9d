//! Whether a turn's cost depends on how long the run is: instructions for the 1,000th command against the 1,000,000th.
//!
//! Counted by valgrind, so the figure is the same however busy the machine is; without valgrind the bench says so.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a program of its own"
)]

use std::process::{Command, Stdio};

use dacapo_core::{
    Activation, Completion, Ctx, Failure, Job, Outcome, Payload, Resolution, Run, RunOptions, Seq, Start, Timestamp,
    Turn, Workflow,
};

async fn chain(ctx: Ctx, _: Vec<Payload>) -> Result<Payload, Failure> {
    loop {
        ctx.activity("echo", "{\"order\":42}").await?;
    }
}

fn play(turns: u64) {
    let options = RunOptions { double_play: false, ..RunOptions::default() };
    let mut run = Run::new(Workflow::new("chain", chain), options).expect("a run");
    let mut activate = |job: Job, now: u64| match run.activate(Activation::Turn(Turn::new(Timestamp(now), vec![job]))) {
        Completion::Turn(done) => assert_eq!(done.commands.len(), 1),
        other => panic!("{other:?}"),
    };
    activate(Job::Start(Box::new(Start { workflow: "chain".into(), ..Start::default() })), 0);
    for seq in 0..turns {
        let resolution = Resolution::Activity(Outcome::Completed("{\"order\":42}".into()));
        activate(Job::resolve(Seq(seq), resolution), seq);
    }
}

/// Instructions that playing this many turns takes, as valgrind counts them.
fn instructions(turns: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--turns", &turns.to_string()])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let counted = text.lines().find_map(|line| line.split_once("Collected :"))?;
    counted.1.trim().parse().ok()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(place) = args.iter().position(|arg| arg == "--turns") {
        return play(args[place + 1].parse().expect("a number of turns"));
    }
    if !args.iter().any(|arg| arg == "--bench") {
        return play(100); // `cargo test` runs benches once, to see that they work.
    }
    const SPAN: u64 = 1_000;
    let per_turn = |from: u64| Some((instructions(from + SPAN)? - instructions(from)?) as f64 / SPAN as f64);
    match (per_turn(1_000), per_turn(1_000_000)) {
        (Some(early), Some(late)) => {
            println!("instructions per turn after     1,000 turns: {early:.0}");
            println!("instructions per turn after 1,000,000 turns: {late:.0} ({:.3} of that)", late / early);
        }
        _ => println!("valgrind is not installed: nothing was counted"),
    }
}
