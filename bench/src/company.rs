//! Healthy runs in bad company: how long a turn of theirs takes when other code spins, sleeps, panics or blocks.
//!
//! A turn is measured from the end of one activity to the beginning of the next: the result is taken, the turn is played and
//! committed, the next attempt begins. The three companies take turns, because what a shared machine gives changes.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dacapo::App;
use dacapo::prelude::*;
use dacapo_bench_meter::{Latencies, Line, Usage};

/// How much of it is run.
#[derive(Clone, Copy)]
pub(crate) struct Party {
    /// Healthy runs, so many of them at a time, with so many activities each.
    runs: u32,
    at_a_time: u32,
    steps: u32,
    /// How often all companies are measured.
    rounds: u32,
    /// For how long bad code spins or sleeps.
    bad: Duration,
}

impl Party {
    pub(crate) const FULL: Self =
        Self { runs: 1_000, at_a_time: 20, steps: 10, rounds: 5, bad: Duration::from_secs(5) };
    pub(crate) const QUICK: Self =
        Self { runs: 20, at_a_time: 5, steps: 3, rounds: 1, bad: Duration::from_millis(300) };
}

/// The turns that were measured since the last look.
static TURNS: Mutex<Vec<Duration>> = Mutex::new(Vec::new());
/// The moment from which on all are counted.
static BEGAN: Mutex<Option<Instant>> = Mutex::new(None);
/// Bad code goes on until then.
static BAD_UNTIL: Mutex<Option<Instant>> = Mutex::new(None);
static RELEASED: AtomicBool = AtomicBool::new(false);

fn nanos() -> u64 {
    let began = *BEGAN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert_with(Instant::now);
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn is_bad() -> bool {
    let until = *BAD_UNTIL.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    until.is_some_and(|until| Instant::now() < until)
}

/// Is given when the one before ended, and gives when it ends itself.
#[activity]
async fn step(before: u64) -> Result<u64, Failure> {
    if before > 0 {
        let turn = Duration::from_nanos(nanos().saturating_sub(before));
        TURNS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(turn);
    }
    Ok(nanos())
}

#[workflow]
async fn healthy(ctx: Ctx, steps: u32) -> Result<u64, Failure> {
    let mut ended = 0;
    for _ in 0..steps {
        ended = ctx.call(step, ended).await?;
    }
    Ok(ended)
}

/// As all bad ones it begins well, so that its start is answered.
#[workflow]
async fn spins(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(step, 0).await?;
    while is_bad() {
        std::hint::spin_loop();
    }
    Ok(())
}

#[workflow]
async fn sleeps(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(step, 0).await?;
    while is_bad() {
        std::thread::sleep(millis(10));
    }
    Ok(())
}

#[workflow]
async fn panics(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(step, 0).await?;
    match is_bad() {
        true => panic!("on purpose"),
        false => Ok(()),
    }
}

/// Blocks, and ignores every request to stop.
#[activity]
fn blocks(_number: u32) -> Result<(), Failure> {
    while !RELEASED.load(Ordering::Relaxed) {
        std::thread::sleep(millis(10));
    }
    Ok(())
}

#[workflow]
async fn calls_deaf(ctx: Ctx) -> Result<(), Failure> {
    ctx.call(blocks, 0).start_to_close(millis(100)).retry(Retry::exponential().attempts(1)).await
}

/// As many as a queue runs at a time, less the few that healthy runs need.
#[workflow]
async fn blocks_many(ctx: Ctx, number: u32) -> Result<(), Failure> {
    let all: Vec<_> = (0..number).map(|number| ctx.call(blocks, number)).collect();
    for one in all {
        one.await?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Company {
    Alone,
    Bad,
    Blocking,
}

impl Company {
    const ALL: [(Self, &str); 3] =
        [(Self::Alone, "alone"), (Self::Bad, "bad_company"), (Self::Blocking, "blocking_activities")];

    async fn invite(self, app: &App, party: Party) -> Result<()> {
        RELEASED.store(false, Ordering::Relaxed);
        *BAD_UNTIL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(Instant::now() + party.bad);
        match self {
            Self::Alone => {}
            Self::Bad => {
                app.start(spins, ()).await?;
                app.start(sleeps, ()).await?;
                app.start(panics, ()).await?;
                app.start(calls_deaf, ()).await?;
            }
            Self::Blocking => drop(app.start(blocks_many, 200 - party.at_a_time).await?),
        }
        Ok(())
    }
}

pub(crate) async fn run(party: Party, folder: &Path) -> Result<()> {
    let mut all: Vec<(Latencies, f64, Usage)> = vec![Default::default(); Company::ALL.len()];
    for round in 0..party.rounds {
        for ((company, name), (turns, seconds, usage)) in Company::ALL.iter().zip(&mut all) {
            let file = folder.join(format!("{name}-{round}.db"));
            let store = Dacapo::open(&format!("sqlite:{}", file.display())).await?;
            let app = store.serve((healthy, spins, sleeps, panics, calls_deaf, blocks_many, step, blocks)).await?;
            company.invite(&app, party).await?;
            let (before, began) = (Usage::now(), Instant::now());
            live(&app, party).await?;
            *seconds += began.elapsed().as_secs_f64();
            *usage = *usage + (Usage::now() - before);
            turns.extend(TURNS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).drain(..));
            // Bad code returns now, so that the next company does not have it too.
            RELEASED.store(true, Ordering::Relaxed);
            *BAD_UNTIL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = None;
            app.stop().await;
        }
    }
    for ((_, name), (turns, seconds, usage)) in Company::ALL.iter().zip(&all) {
        let expected = u64::from(party.rounds) * u64::from(party.runs) * u64::from(party.steps - 1);
        ensure!(turns.count() as u64 >= expected, "{name}: {} of {expected} turns were seen", turns.count());
        Line::new("company", name, (turns.count() as u64, "turns"), *seconds, turns).used(*usage).print();
    }
    Ok(())
}

/// All healthy runs, some at a time.
async fn live(app: &App, party: Party) -> Result<()> {
    let mut workers: tokio::task::JoinSet<dacapo::Result<()>> = tokio::task::JoinSet::new();
    for _ in 0..party.at_a_time {
        let app = app.clone();
        workers.spawn(async move {
            for _ in 0..party.runs / party.at_a_time {
                app.start(healthy, party.steps).await?.result().await?;
            }
            Ok(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(())
}
