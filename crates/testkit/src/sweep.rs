//! Sweeps: a test function (a story) played once for every moment at which its process can die.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::kit::{Kit, moments};

/// The counts of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// The number of moments at which the process could die when the story was played whole.
    pub moments: u64,
    /// The number of deaths of a process, in all plays together.
    pub crashes: u64,
    /// The number of plays of the story, the whole play included.
    pub plays: u64,
    /// The number of attempts that were lost with the processes that made them.
    pub lost: u64,
}

impl Kit {
    /// Plays a story (a test function) once whole, and then once for every moment at which its process can die: before
    /// and after every commit, before and after every attempt. After each death another process goes on with the same
    /// store.
    ///
    /// The story makes its own fakes and runs, and asserts what must hold wherever it crashed: results are always the
    /// same; attempts may be one more than without the crash. Returns the number of crashes. [`Sweep`] has more
    /// settings.
    ///
    /// ```
    /// # use dacapo::prelude::*;
    /// # use dacapo_testkit::Kit;
    /// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
    /// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
    /// let crashes = Kit::sweep(|kit| {
    ///     let charges = kit.fake(charge, |_| Ok(()));
    ///     assert_eq!(kit.run(pay, 500), Ok(500));
    ///     assert!(charges.count() <= 2);
    /// });
    /// assert!(crashes > 0);
    /// ```
    pub fn sweep(story: impl FnMut(&mut Self)) -> u64 {
        Sweep::new(Self::new).play(story).crashes
    }
}

/// A sweep with settings: [`Kit::sweep`] is one with none.
///
/// The story makes its own fakes and runs, and asserts what must hold wherever it crashed. After each play the sweep
/// itself checks that every result is recorded once, that the histories still contain all turns that dead processes
/// left, and that only lost attempts were made again.
///
/// ```
/// # use dacapo::prelude::*;
/// # use dacapo_testkit::{Kit, Sweep};
/// # #[activity] async fn charge(cents: u64) -> Result<(), Failure> { unimplemented!("tests charge no card") }
/// # #[workflow] async fn pay(ctx: Ctx, cents: u64) -> Result<u64, Failure> { ctx.call(charge, cents).await.map(|()| cents) }
/// let swept = Sweep::new(Kit::new).again_at_every(5).play(|kit| {
///     kit.fake(charge, |_| Ok(()));
///     assert_eq!(kit.run(pay, 500), Ok(500));
/// });
/// assert!(swept.crashes > swept.moments, "some processes died after another");
/// ```
pub struct Sweep<M> {
    kit: M,
    again: Option<u64>,
}

impl<M: Fn() -> Kit> Sweep<M> {
    /// Creates a sweep that plays in kits made by `kit`, each over a store of its own.
    pub fn new(kit: M) -> Self {
        Self { kit, again: None }
    }

    /// Lets the next process die as well after each death, in another play for each of its moments, or each second,
    /// third and so on.
    #[must_use]
    pub fn again_at_every(mut self, moments: u64) -> Self {
        self.again = Some(moments.max(1));
        self
    }

    /// Plays the story once whole, and then once for every crash.
    pub fn play(self, mut story: impl FnMut(&mut Kit)) -> Swept {
        let mut swept = Swept::default();
        let moments = play(&self.kit, &[], &mut story, &mut swept);
        swept.moments = moments;
        for first in 0..moments {
            let after = play(&self.kit, &[first], &mut story, &mut swept);
            let Some(step) = self.again else { continue };
            for second in (0..after).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
                play(&self.kit, &[first, second], &mut story, &mut swept);
            }
        }
        swept
    }
}

/// Plays the story with these crashes, and returns the number of moments of the last process.
fn play(make: &impl Fn() -> Kit, crashes: &[u64], story: &mut impl FnMut(&mut Kit), swept: &mut Swept) -> u64 {
    let mut kit = crashes.iter().fold(make(), |kit, moment| kit.crash_at(*moment));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        story(&mut kit);
        // The process may have died after all work was done.
        kit.settle();
        kit.assert_results_are_recorded_once();
    }));
    if let Err(panic) = outcome {
        eprintln!("processes were to die at moments {crashes:?}, and died {:?}", kit.deaths());
        resume_unwind(panic);
    }
    swept.plays += 1;
    swept.crashes += kit.deaths().len() as u64;
    swept.lost += kit.attempts().lost;
    moments(&mut kit)
}
