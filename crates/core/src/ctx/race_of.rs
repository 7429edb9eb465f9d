//! Races of three to eight futures of different types.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::race::{Contend, Contender, Sides, decide};
use super::standings::Tracking;
use crate::run::Shared;
use crate::{Ctx, Failure};

impl Ctx {
    /// Races three to eight futures, given as a tuple: the one whose result came first wins, whichever is listed first.
    /// The others are dropped, which cancels them. See [`Ctx::race`] for the rules.
    pub fn race_of<E: Entrants>(&self, entrants: E) -> E::Race {
        entrants.race(self)
    }
}

/// The futures of a race: a tuple of three to eight futures whose outputs are results.
pub trait Entrants {
    /// The race of these futures.
    type Race;

    /// Begins the race.
    fn race(self, ctx: &Ctx) -> Self::Race;
}

macro_rules! race_of {
    ($count:literal $one_of:ident $race:ident: $($place:tt $variant:ident $future:ident $value:ident $error:ident),+) => {
        #[doc = concat!("The winner of a race of ", stringify!($count), ", with its value.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $one_of<$($value),+> {
            $(
                #[doc = concat!("The future at place ", stringify!($place), " of the tuple won.")]
                $variant($value),
            )+
        }

        #[doc = concat!("A race of ", stringify!($count), " futures: await it for the winner.")]
        #[must_use = "a race does nothing unless it is awaited"]
        pub struct $race<$($future: Future),+> {
            shared: Arc<Shared>,
            sides: ($(Contender<$future>,)+),
            tracking: Tracking,
        }

        impl<$($future: Future),+> Sides for ($(Contender<$future>,)+) {
            fn side(&mut self, place: usize) -> &mut dyn Contend {
                match place {
                    $($place => &mut self.$place,)+
                    _ => unreachable!("the race has fewer sides"),
                }
            }
        }

        impl<$($future: Future<Output = Result<$value, $error>>, $value, $error),+> Entrants for ($($future,)+) {
            type Race = $race<$($future),+>;

            fn race(self, ctx: &Ctx) -> Self::Race {
                let tracking = Tracking::default();
                let sides = ($(Contender::new(self.$place).with_waker(tracking.waker(&ctx.shared, $place)),)+);
                $race { shared: ctx.shared.clone(), sides, tracking }
            }
        }

        impl<$($future, $value, $error),+> Future for $race<$($future),+>
        where
            $($future: Future<Output = Result<$value, $error>>, Failure: From<$error>,)+
        {
            type Output = Result<$one_of<$($value),+>, Failure>;

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let Self { shared, sides, tracking } = &mut *self;
                let pending = [$(sides.$place.is_pending()),+];
                let places = tracking.places(shared, cx, pending.len(), |place| pending[place]);
                let Some(places) = places else { return Poll::Pending };
                match decide(shared, sides, &mut tracking.standings, places, cx) {
                    $(
                        Some($place) => match sides.$place.leave() {
                            Some(output) => Poll::Ready(output.map($one_of::$variant).map_err(Failure::from)),
                            None => Poll::Pending,
                        },
                    )+
                    _ => Poll::Pending,
                }
            }
        }
    };
}

race_of! { 3 OneOf3 Race3: 0 First A X E, 1 Second B Y F, 2 Third C Z G }
race_of! { 4 OneOf4 Race4: 0 First A X E, 1 Second B Y F, 2 Third C Z G, 3 Fourth D W H }
race_of! {
    5 OneOf5 Race5:
    0 First A1 T1 E1, 1 Second A2 T2 E2, 2 Third A3 T3 E3, 3 Fourth A4 T4 E4, 4 Fifth A5 T5 E5
}
race_of! {
    6 OneOf6 Race6:
    0 First A1 T1 E1, 1 Second A2 T2 E2, 2 Third A3 T3 E3, 3 Fourth A4 T4 E4, 4 Fifth A5 T5 E5, 5 Sixth A6 T6 E6
}
race_of! {
    7 OneOf7 Race7:
    0 First A1 T1 E1, 1 Second A2 T2 E2, 2 Third A3 T3 E3, 3 Fourth A4 T4 E4, 4 Fifth A5 T5 E5, 5 Sixth A6 T6 E6,
    6 Seventh A7 T7 E7
}
race_of! {
    8 OneOf8 Race8:
    0 First A1 T1 E1, 1 Second A2 T2 E2, 2 Third A3 T3 E3, 3 Fourth A4 T4 E4, 4 Fifth A5 T5 E5, 5 Sixth A6 T6 E6,
    6 Seventh A7 T7 E7, 7 Eighth A8 T8 E8
}
