//! Sweeps: a story played once for every moment at which its process can die.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::kit::Kit;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// At how many moments the process could die when the story was played whole.
    pub moments: u64,
    /// How often a process died, in all plays together.
    pub crashes: u64,
    /// How often the story was played, the whole play included.
    pub plays: u64,
    /// How many attempts were lost with the processes that made them.
    pub lost: u64,
}

impl Kit {
    /// Plays a story once whole, and then once for every moment at which its process can die: before and after every
    /// commit, before and after every attempt. After each death another process goes on with what was stored.
    ///
    /// The story makes its own fakes and runs, and asserts what must hold wherever it crashed: results are always the
    /// same; attempts may be one more than without the crash. Gives the number of crashes. [`Sweep`] has more to set.
    pub fn sweep(story: impl FnMut(&mut Self)) -> u64 {
        Sweep::new(Self::new).play(story).crashes
    }
}

/// A sweep that is set up: [`Kit::sweep`] is one with nothing set.
///
/// The story makes its own fakes and runs, and asserts what must hold wherever it crashed. After each play the sweep itself
/// checks that every result is recorded once, that all that dead processes left is there as they left it, and that no
/// attempt was made again but those that were lost.
pub struct Sweep<M> {
    kit: M,
    again: Option<u64>,
}

impl<M: Fn() -> Kit> Sweep<M> {
    /// A sweep that plays in kits made by this, each over a store of its own.
    pub fn new(kit: M) -> Self {
        Self { kit, again: None }
    }

    /// After each death the next process dies as well, in another play for each of its moments, or each second, third
    /// and so on.
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

/// Plays the story with these crashes, and gives the number of moments of the last process.
fn play(make: &impl Fn() -> Kit, crashes: &[u64], story: &mut impl FnMut(&mut Kit), swept: &mut Swept) -> u64 {
    let mut kit = crashes.iter().fold(make(), |kit, moment| kit.crash_at(*moment));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        story(&mut kit);
        // It may have died after all was done.
        kit.settle();
        kit.assert_books_balance();
    }));
    if let Err(panic) = outcome {
        eprintln!("processes were to die at moments {crashes:?}, and died {:?}", kit.deaths());
        resume_unwind(panic);
    }
    swept.plays += 1;
    swept.crashes += kit.deaths().len() as u64;
    swept.lost += kit.attempts().lost;
    kit.moments()
}
