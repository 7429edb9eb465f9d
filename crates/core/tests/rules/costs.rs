//! What many branches and many conditions cost: counted in polls and evaluations, so that no clock decides.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use crate::kit::*;

/// How many branches or units there are.
const MANY: usize = 1_000;

/// A future whose polls are counted.
struct Counted<F>(Pin<Box<F>>, Arc<AtomicUsize>);

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.as_mut().poll(cx)
    }
}

type Branch = Counted<Pin<Box<dyn Future<Output = Result<usize, Cancelled>> + Send>>>;

/// This many timers, each of which gives its number.
fn branches(ctx: &Ctx, polls: &Arc<AtomicUsize>) -> Vec<Branch> {
    let branch = |place| {
        let timer = ctx.sleep(secs(1));
        let future = Box::pin(async move { timer.await.map(|()| place) }) as Pin<Box<dyn Future<Output = _> + Send>>;
        Counted(Box::pin(future), polls.clone())
    };
    (0..MANY).map(branch).collect()
}

/// Plays a workflow over the counter: its start, and then these turns. Gives the result and what was counted.
fn counted<F, P>(function: F, turns: impl IntoIterator<Item = Vec<Job>>) -> (String, usize)
where
    F: Fn(Ctx, Arc<AtomicUsize>) -> P + Send + Sync + 'static,
    P: Future<Output = Done> + Send + 'static,
{
    let counter = Arc::new(AtomicUsize::new(0));
    let inside = counter.clone();
    let workflow = workflow(move |ctx, _| function(ctx, inside.clone()));
    let mut run = Run::new(workflow, RunOptions { double_play: false, ..RunOptions::default() }).unwrap();
    let mut result = None;
    for jobs in std::iter::once(vec![start(7)]).chain(turns) {
        let completion = run.activate(turn(jobs));
        if let Some(Command { kind: CommandKind::Complete { result: payload }, .. }) = commands(&completion).last() {
            result = payload.as_text().map(str::to_owned);
        }
    }
    (result.expect("the run completes"), counter.load(Ordering::Relaxed))
}

fn fire(place: usize) -> Job {
    Job::resolve(Seq(place as u64), Resolution::Timer)
}

/// The places of timers, out of order.
fn mixed() -> impl Iterator<Item = usize> {
    (0..MANY).map(|step| step * 7 % MANY)
}

/// Takes all winners, one after the other, and says in which order they came.
async fn take_all(mut race: SelectAll<Branch>) -> Vec<usize> {
    let mut order = Vec::new();
    let mut left: Vec<usize> = (0..MANY).collect();
    while !race.is_empty() {
        let (place, output, others) = race.await;
        assert_eq!(output.as_ref().ok(), Some(&left.remove(place)), "the place is that among those left");
        order.extend(output);
        race = others;
    }
    order
}

fn said(order: &[usize]) -> Done {
    let is_right = order.iter().copied().eq(mixed());
    Ok(Payload::from(if is_right { "in order".to_owned() } else { format!("{order:?}") }))
}

/// A branch is polled when something happened to it, whether its result comes alone or with others.
#[test]
fn select_all_over_many_branches_polls_each_a_few_times_in_all() {
    let one_by_one = counted(
        |ctx, polls| async move { said(&take_all(ctx.select_all(branches(&ctx, &polls))).await) },
        mixed().map(|place| vec![fire(place)]),
    );
    assert_eq!(one_by_one, ("in order".to_owned(), 3 * MANY), "looked at, looked at again and taken");
    let all_at_once = counted(
        |ctx, polls| async move { said(&take_all(ctx.select_all(branches(&ctx, &polls))).await) },
        [mixed().map(fire).collect()],
    );
    assert_eq!(all_at_once, ("in order".to_owned(), 3 * MANY));
}

/// Results that came before the first poll are there at once, and are looked at once.
#[test]
fn select_all_over_many_finished_branches_polls_each_twice() {
    let found = counted(
        |ctx, polls| async move {
            let branches = branches(&ctx, &polls);
            ctx.next_signal("go").await?;
            said(&take_all(ctx.select_all(branches)).await)
        },
        [mixed().map(fire).collect(), vec![Job::Signal(Box::new(Signal { name: "go".into(), ..Signal::default() }))]],
    );
    assert_eq!(found, ("in order".to_owned(), 2 * MANY));
}

/// The rest of a large race may stand in a race of its own each time.
#[test]
fn select_all_within_a_new_race_each_time_polls_only_what_was_woken() {
    let (result, polls) = counted(
        |ctx, polls| async move {
            let mut race = ctx.select_all(branches(&ctx, &polls));
            let mut order = Vec::new();
            while !race.is_empty() {
                let winner = async { Ok::<_, Failure>(race.await) };
                let Either::First((_, output, others)) = ctx.race(winner, ctx.next_signal("stop")).await? else {
                    break;
                };
                order.extend(output);
                race = others;
            }
            said(&order)
        },
        mixed().map(|place| vec![fire(place)]),
    );
    assert_eq!(result, "in order");
    assert!(polls <= 4 * MANY, "{polls} polls");
}

/// Races of races: those that were polled often poll only the sides that were woken.
#[test]
fn race_of_many_branches_with_several_results_each_polls_only_what_was_woken() {
    type Side = Pin<Box<dyn Future<Output = Result<usize, Failure>> + Send>>;
    fn tree(ctx: &Ctx, mut sides: Vec<Side>) -> Side {
        if sides.len() == 1 {
            return sides.remove(0);
        }
        let second = tree(ctx, sides.split_off(sides.len() / 2));
        let race = ctx.race(tree(ctx, sides), second);
        Box::pin(async move {
            Ok(match race.await? {
                Either::First(place) | Either::Second(place) => place,
            })
        })
    }
    // All take a first result, and then one takes a second.
    let (result, polls) = counted(
        |ctx, polls| async move {
            let sides = (0..MANY).map(|place| {
                let (inside, first) = (ctx.clone(), ctx.sleep(secs(1)));
                let side = async move {
                    first.await?;
                    inside.sleep(secs(1)).await?;
                    Ok(place)
                };
                Box::pin(Counted(Box::pin(side), polls.clone())) as Side
            });
            let sides = sides.collect();
            Ok(Payload::from(tree(&ctx, sides).await?.to_string()))
        },
        mixed().map(|place| vec![fire(place)]).chain([vec![fire(MANY + 3)]]),
    );
    assert_eq!(result, mixed().nth(3).unwrap().to_string());
    assert!(polls <= 20 * MANY, "{polls} polls");
}

/// Conditions that are evaluated, each over a cell of its own.
fn flags(ctx: &Ctx) -> Vec<StateCell<bool>> {
    (0..MANY).map(|_| ctx.state(false)).collect()
}

fn evaluate(flag: &StateCell<bool>, evaluations: &Arc<AtomicUsize>) -> impl Fn() -> bool + Send + Sync + 'static {
    let (flag, evaluations) = (flag.clone(), evaluations.clone());
    move || {
        evaluations.fetch_add(1, Ordering::Relaxed);
        flag.read(|flag| *flag)
    }
}

/// S0-15
#[test]
fn many_units_that_wait_for_conditions_of_their_own_evaluate_each_twice() {
    let release = |place: usize| {
        Job::Signal(Box::new(Signal { name: "set".into(), input: vec![place.to_string().into()], ..Signal::default() }))
    };
    let waits = |ctx: Ctx, evaluations: Arc<AtomicUsize>| async move {
        let flags = flags(&ctx);
        let units: Vec<_> = flags.iter().map(|flag| ctx.wait_until(evaluate(flag, &evaluations))).collect();
        ctx.on_signal("set", move |signal| {
            let place: usize = signal.input[0].as_text().and_then(|place| place.parse().ok()).unwrap_or_default();
            flags[place].update(|flag| *flag = true);
            async { Ok(()) }
        });
        let ended = ctx.parallel(units).await;
        Ok(Payload::from(ended.into_iter().filter(Result::is_ok).count().to_string()))
    };
    let (ended, one_by_one) = counted(waits, mixed().map(|place| vec![release(place)]));
    // When the wait begins, and when its cell has changed; the last 64 are also evaluated whenever a turn comes to rest.
    assert_eq!(ended, MANY.to_string());
    assert!((2 * MANY..=2 * MANY + 64 * 65 / 2).contains(&one_by_one), "{one_by_one} evaluations");
    let all_at_once = counted(waits, [mixed().map(release).collect()]);
    assert_eq!(all_at_once, (MANY.to_string(), 2 * MANY));
}

/// S0-15, S0-25: each unit lets the next one go on, all in one turn and each in a round of its own.
#[test]
fn many_units_that_release_each_other_evaluate_each_condition_twice() {
    let found = counted(
        |ctx, evaluations| async move {
            let flags = flags(&ctx);
            let units: Vec<_> = (0..MANY)
                .map(|place| {
                    let wait = ctx.wait_until(evaluate(&flags[place], &evaluations));
                    let next = flags.get(place + 1).cloned();
                    async move {
                        wait.await?;
                        if let Some(next) = next {
                            *next.lock() = true;
                        }
                        Ok::<_, Failure>(())
                    }
                })
                .collect();
            let (first, inside) = (flags[0].clone(), ctx.clone());
            drop(ctx.launch(async move {
                inside.sleep(secs(1)).await?;
                first.update(|flag| *flag = true);
                Ok(())
            }));
            let ended = ctx.parallel(units).await;
            Ok(Payload::from(ended.into_iter().filter(Result::is_ok).count().to_string()))
        },
        [vec![fire(0)]],
    );
    assert_eq!(found, (MANY.to_string(), 2 * MANY));
}

/// S0-15: which cells a condition reads may depend on what it finds in them.
#[test]
fn condition_is_evaluated_again_when_a_cell_that_it_has_come_to_read_changes() {
    check(
        |ctx: Ctx, _| async move {
            let (first, second) = (ctx.state(false), ctx.state(false));
            let (a, b) = (first.clone(), second.clone());
            ctx.on_signal("set", move |signal| {
                let cell = if signal.input[0].as_text() == Some("first") { &a } else { &b };
                *cell.lock() = true;
                async { Ok(()) }
            });
            ctx.wait_until(move || first.read(|first| *first) && *second.lock()).await?;
            nothing()
        },
        "start
         signal set = first
         signal set = second",
        expect![[r#"
            turn 0
            turn 1
            turn 2  [] complete
        "#]],
    );
}

/// S0-15: a condition that reads no cell may depend on anything, and is evaluated after every round.
#[test]
fn condition_that_reads_no_cell_is_evaluated_after_every_round() {
    let (result, evaluations) = counted(
        |ctx, evaluations| async move {
            let is_set = Arc::new(AtomicUsize::new(0));
            let seen = is_set.clone();
            let wait = ctx.wait_until(move || {
                evaluations.fetch_add(1, Ordering::Relaxed);
                seen.load(Ordering::Relaxed) == 3
            });
            let inside = ctx.clone();
            drop(ctx.launch(async move {
                for _ in 0..3 {
                    inside.yield_now().await;
                    is_set.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }));
            wait.await?;
            nothing()
        },
        [],
    );
    assert_eq!((result.as_str(), evaluations), ("", 6), "when it begins, and after five rounds");
}

/// Waits for a condition that reads a cell and depends on something else, beside so many others.
fn mixing(others: usize) -> impl Fn(Ctx, Payload) -> std::pin::Pin<Box<dyn Future<Output = Done> + Send>> + Clone {
    move |ctx: Ctx, _: Payload| {
        Box::pin(async move {
            let never: Vec<_> = (0..others).map(|_| ctx.state(false)).collect();
            for cell in never {
                let waits = ctx.clone();
                drop(ctx.launch(async move { Ok(waits.wait_until(move || cell.read(|cell| *cell)).await?) }));
            }
            let (cell, other) = (ctx.state(false), Arc::new(AtomicUsize::new(0)));
            let seen = other.clone();
            let inside = ctx.clone();
            drop(ctx.launch(async move {
                inside.sleep(secs(1)).await?;
                other.store(1, Ordering::Relaxed);
                Ok(())
            }));
            ctx.wait_until(move || cell.read(|cell| *cell) || seen.load(Ordering::Relaxed) == 1).await?;
            nothing()
        })
    }
}

/// S0-15: such a condition holds when the turn comes to rest, wherever it is played.
#[test]
fn condition_that_reads_a_cell_and_depends_on_something_else_ends_its_wait() {
    for mode in [Mode::Whole, Mode::Double] {
        let mut play = Player::new(workflow(mixing(3)), Pins::default(), mode);
        play.play("start\n fire 1s");
        assert!(play.printed.ends_with("[] complete\n"), "{}", play.printed);
    }
}

/// S0-15: where very many conditions are waited for it would not be evaluated. Where runs are played twice, that is an error
/// and says what to do.
#[test]
fn one_of_very_many_conditions_that_depends_on_more_than_its_cells_is_refused_where_runs_are_played_twice() {
    let mut play = Player::new(workflow(mixing(64)), Pins::default(), Mode::Double);
    play.play("start\n fire 1s");
    assert!(play.printed.contains("no state cell that it reads has changed"), "{}", play.printed);
    assert!(play.printed.contains("rules/costs.rs"), "it says where: {}", play.printed);
}
