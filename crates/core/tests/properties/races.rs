//! Races against an oracle: the side whose last result came first wins, however sides are built and results are ordered.

use dacapo_core::{
    CommandKind, Ctx, Either, Failure, Job, Outcome, Payload, Pins, Resolution, Rng, Seq, Timestamp, Turn, Workflow,
};
use futures::future::{self, BoxFuture, FutureExt};

use crate::interpret::WORKFLOW;
use crate::world::{new_run, play_turn, start};

/// How a side takes its results.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    InTurn,
    Joined,
    ForeignJoined,
}

type RaceFuture = BoxFuture<'static, Result<(), Failure>>;

fn side(ctx: &Ctx, kind: Side, needs: usize) -> RaceFuture {
    // All are asked for at once, so results may come in any order, also before a unit awaits them.
    let wanted: Vec<_> = (0..needs).map(|_| ctx.activity("a", "")).collect();
    let ctx = ctx.clone();
    async move {
        match kind {
            Side::InTurn => {
                for one in wanted {
                    one.await?;
                }
            }
            Side::Joined => drop(ctx.join(wanted).await),
            Side::ForeignJoined => drop(future::join_all(wanted).await),
        }
        Ok(())
    }
    .boxed()
}

/// How races stand in each other.
#[derive(Clone, Copy, Debug)]
enum Nesting {
    Flat,
    /// A race, and a race of many, in a race.
    InRace,
    /// Two races of many in one.
    InMany,
    /// The same, each within a join.
    InJoin,
}

const NESTINGS: [Nesting; 4] = [Nesting::Flat, Nesting::InRace, Nesting::InMany, Nesting::InJoin];

/// The first two sides, and the others, each in a race of their own: gives their places.
fn halves(ctx: &Ctx, mut playing: Vec<RaceFuture>, joined: bool) -> [BoxFuture<'static, usize>; 2] {
    let rest = playing.split_off(2);
    [(playing, 0), (rest, 2)].map(|(sides, first)| {
        let race = ctx.select_all(sides).map(move |(place, ..)| place + first);
        match joined {
            true => ctx.join([race]).map(|places| places[0]).boxed(),
            false => race.boxed(),
        }
    })
}

fn racing(sides: Vec<(Side, usize)>, nesting: Nesting) -> Workflow {
    Workflow::new(WORKFLOW, move |ctx: Ctx, _| {
        let sides = sides.clone();
        async move {
            let mut playing: Vec<RaceFuture> = sides.iter().map(|(kind, needs)| side(&ctx, *kind, *needs)).collect();
            let winner = match nesting {
                Nesting::Flat => ctx.select_all(playing).await.0,
                Nesting::InMany => ctx.select_all(halves(&ctx, playing, false)).await.1,
                Nesting::InJoin => ctx.select_all(halves(&ctx, playing, true)).await.1,
                Nesting::InRace => {
                    let (first, second) = (playing.remove(0), playing.remove(0));
                    let rest = ctx.select_all(playing);
                    let rest = async { Ok::<_, Failure>(rest.await.0 + 2) };
                    match ctx.race(ctx.race(first, second), rest).await? {
                        Either::First(Either::First(())) => 0,
                        Either::First(Either::Second(())) => 1,
                        Either::Second(place) => place,
                    }
                }
            };
            Ok(Payload::from(winner.to_string()))
        }
    })
}

/// Draws a race and an order of results, plays it, and asks the oracle.
fn race(rng: &mut Rng, nesting: Nesting) {
    let kinds = [Side::InTurn, Side::Joined, Side::ForeignJoined];
    let count = 3 + rng.below(2) as usize;
    let mut draw = |_| (kinds[rng.below(3) as usize], 1 + rng.below(3) as usize);
    let sides: Vec<(Side, usize)> = (0..count).map(&mut draw).collect();
    let mut run = new_run(&racing(sides.clone(), nesting), &Pins::default());
    play_turn(&mut run, Turn::new(Timestamp::default(), vec![start(7)])).expect("it starts");
    let all: usize = sides.iter().map(|(_, needs)| needs).sum();
    let mut order: Vec<u64> = (0..all as u64).collect();
    for place in (1..order.len()).rev() {
        order.swap(place, rng.below(place as u64 + 1) as usize);
    }
    order.truncate(all - rng.below(2) as usize);
    let done = |seq: &u64| {
        let resolution = Resolution::Activity(Outcome::Completed(Payload::empty()));
        Job::resolve(Seq(*seq), resolution)
    };
    let mut winner = None;
    let mut left = &order[..];
    while !left.is_empty() && winner.is_none() {
        let (now, later) = left.split_at(1 + rng.below(left.len() as u64) as usize);
        let turn = Turn::new(Timestamp::default(), now.iter().map(done).collect());
        let answer = play_turn(&mut run, turn).expect("it goes on");
        winner = answer.commands.iter().find_map(|command| match &command.kind {
            CommandKind::Complete { result } => result.as_text().and_then(|text| text.parse::<usize>().ok()),
            _ => None,
        });
        left = later;
    }
    let mut first = 0;
    let ends = sides.iter().enumerate().filter_map(|(place, (_, needs))| {
        let seqs = first..first + *needs as u64;
        first = seqs.end;
        let came = seqs.map(|seq| order.iter().position(|other| *other == seq)).collect::<Option<Vec<_>>>()?;
        Some((came.into_iter().max()?, place))
    });
    let expected = ends.min().map(|(_, place)| place);
    assert_eq!(winner, expected, "{sides:?}, {nesting:?}, results came in the order {order:?}");
}

/// C-15
#[test]
fn the_side_whose_last_result_came_first_wins() {
    let mut rng = Rng::from_seed(40);
    for round in 0..8000 {
        race(&mut rng, NESTINGS[round % 4]);
    }
}
