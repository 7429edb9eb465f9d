//! One termination: of a turn that is stuck, or of an attempt that does not stop.
//!
//! The code is cancelled and interrupted at once, and interrupted again for as long as it runs on: first after
//! `retry_interval`, then after the same once more, then after twice that, and so on, never more than `retry_max_delay`
//! apart. By default this is 1, 2, 4, 8, 16, 32 and 64 s after the request, and from there every 60 s. The end of
//! `grace_period` makes the code a zombie and the end of `give_up_after` makes it leaked. Both are deadlines of their
//! own, so that neither waits for the next retry. Nothing here has a clock: time is an argument.
//!
//! ```text
//! Terminating ──Retry──▶ Terminating: Interrupt
//! Terminating ──Grace──▶ Zombie: CountZombie, ReportZombie
//! Terminating ──Finished──▶ Done
//! Zombie ──Retry──▶ Zombie: Interrupt
//! Zombie ──GiveUp──▶ Leaked: ReportLeaked
//! Zombie ──Finished──▶ Done: UncountZombie, ReportEnded
//! Leaked ──Finished──▶ Done: UncountZombie, ReportEnded
//! Done ──Finished──▶ Done
//! ```

use std::time::Duration;

use dacapo_core::Timestamp;

use crate::ZombieSettings;

/// The state of a termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TerminationState {
    /// The code was asked to stop.
    Terminating,
    /// The code runs on after the grace period, and counts as a zombie.
    Zombie,
    /// The worker no longer asks the code to stop. It still counts.
    Leaked,
    /// The code has ended.
    Done,
}

/// An action that the worker performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Tell the code that it is cancelled.
    Cancel,
    /// Stop the code wherever it can be stopped.
    Interrupt,
    /// Count one zombie more.
    CountZombie,
    /// Log the zombie as an error.
    ReportZombie,
    /// Log that the worker no longer asks it to stop.
    ReportLeaked,
    /// Count one zombie less.
    UncountZombie,
    /// Log that a zombie has ended after all.
    ReportEnded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Input {
    // Of two inputs that are due at the same moment the upper one goes first.
    Grace,
    GiveUp,
    Retry,
    Finished,
}

/// Returns the transition from a state by an input. None where there is no such transition.
fn arrow(state: TerminationState, input: Input) -> Option<(TerminationState, &'static [Act])> {
    use Input::{Finished, GiveUp, Grace, Retry};
    use TerminationState::{Done, Leaked, Terminating, Zombie};
    match (state, input) {
        (Terminating, Retry) => Some((Terminating, &[Act::Interrupt])),
        (Terminating, Grace) => Some((Zombie, &[Act::CountZombie, Act::ReportZombie])),
        (Terminating, Finished) => Some((Done, &[])),
        (Zombie, Retry) => Some((Zombie, &[Act::Interrupt])),
        (Zombie, GiveUp) => Some((Leaked, &[Act::ReportLeaked])),
        (Zombie | Leaked, Finished) => Some((Done, &[Act::UncountZombie, Act::ReportEnded])),
        // Two threads may see the end of the same code.
        (Done, Finished) => Some((Done, &[])),
        (Terminating, GiveUp) | (Zombie, Grace) | (Leaked | Done, Grace | GiveUp | Retry) => None,
    }
}

/// One termination.
#[derive(Clone, Debug)]
pub struct Termination {
    state: TerminationState,
    since: Timestamp,
    grace: Timestamp,
    give_up: Timestamp,
    /// When the next retry is due.
    retry: Option<Timestamp>,
    /// The pause after that retry.
    pause: Duration,
    longest: Duration,
    interrupts: u32,
    #[cfg(test)]
    taken: Vec<(TerminationState, Input)>,
}

impl Termination {
    /// Begins a termination: asks the code to stop.
    pub fn begin(now: Timestamp, settings: &ZombieSettings) -> (Self, Vec<Act>) {
        // Without any pause the retries would never come to an end.
        let pause = settings.retry_interval.min(settings.retry_max_delay).max(Duration::from_millis(1));
        let longest = settings.retry_max_delay.max(pause);
        let termination = Self {
            state: TerminationState::Terminating,
            since: now,
            grace: now.after(settings.grace_period),
            give_up: now.after(settings.give_up_after.max(settings.grace_period)),
            retry: later(now, pause),
            pause,
            longest,
            interrupts: 1,
            #[cfg(test)]
            taken: Vec::new(),
        };
        (termination, vec![Act::Cancel, Act::Interrupt])
    }

    /// Performs what is due by now. However late it is, the code is interrupted once at most.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Act> {
        let mut acts = Vec::new();
        while let Some((at, input)) = self.due()
            && at <= now
        {
            if input == Input::Retry {
                self.plan_retry(now);
            }
            acts.extend(self.take(input));
        }
        acts
    }

    /// Ends the termination: the code has ended.
    pub fn finished(&mut self) -> Vec<Act> {
        self.take(Input::Finished)
    }

    /// Returns when [`Self::tick`] has something to do.
    pub fn next(&self) -> Option<Timestamp> {
        self.due().map(|(at, _)| at)
    }

    /// Returns the termination's state.
    pub fn state(&self) -> TerminationState {
        self.state
    }

    /// Returns when the code was asked to stop.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns how often the code was interrupted.
    pub fn interrupts(&self) -> u32 {
        self.interrupts
    }

    fn due(&self) -> Option<(Timestamp, Input)> {
        let deadline = match self.state {
            TerminationState::Terminating => (self.grace, Input::Grace),
            TerminationState::Zombie => (self.give_up, Input::GiveUp),
            TerminationState::Leaked | TerminationState::Done => return None,
        };
        let retry = self.retry.map(|retry| (retry, Input::Retry));
        Some(retry.map_or(deadline, |retry| retry.min(deadline)))
    }

    /// Sets the first retry after now. The second pause is as long as the first, and only then pauses double.
    fn plan_retry(&mut self, now: Timestamp) {
        while let Some(retry) = self.retry.filter(|retry| *retry <= now) {
            self.retry = later(retry, self.pause);
            self.pause = self.pause.saturating_mul(2).min(self.longest);
        }
    }

    fn take(&mut self, input: Input) -> Vec<Act> {
        let (next, acts) = arrow(self.state, input)
            .unwrap_or_else(|| panic!("only what is due is taken, and {input:?} is not due in {:?}", self.state));
        #[cfg(test)]
        self.taken.push((self.state, input));
        self.state = next;
        self.interrupts += u32::from(acts.contains(&Act::Interrupt));
        acts.to_vec()
    }
}

/// Returns the moment after a pause. None where time ends before.
fn later(moment: Timestamp, pause: Duration) -> Option<Timestamp> {
    Some(moment.after(pause)).filter(|later| *later > moment)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use TerminationState::{Done, Leaked, Terminating, Zombie};

    const BEGIN: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn after(millis: u64) -> Timestamp {
        BEGIN.after(Duration::from_millis(millis))
    }

    fn begin(settings: &ZombieSettings) -> Termination {
        let (termination, acts) = Termination::begin(BEGIN, settings);
        assert_eq!(acts, [Act::Cancel, Act::Interrupt]);
        termination
    }

    /// Ticks exactly when the termination asks to, until it asks no more or `until` ms have passed. Returns each action
    /// with its time in ms.
    fn play(termination: &mut Termination, until: u64) -> Vec<(u64, Vec<Act>)> {
        let mut done = Vec::new();
        while let Some(at) = termination.next().filter(|at| *at <= after(until)) {
            let early = Timestamp(at.0 - 1);
            assert_eq!(termination.tick(early), [], "a nanosecond too soon");
            done.push((at.since(BEGIN).as_millis().try_into().unwrap(), termination.tick(at)));
            assert!(termination.next().is_none_or(|next| next > at), "one tick does all that is due");
        }
        done
    }

    fn times(done: &[(u64, Vec<Act>)], act: Act) -> Vec<u64> {
        done.iter().filter(|(_, acts)| acts.contains(&act)).map(|(at, _)| *at).collect()
    }

    /// S3-20, S3-21, S3-25, S3-27, S3-28, S3-29, C-21, T-12: cancelled and interrupted at once, interrupted again at 1, 2, 4
    /// and 8 s, and a zombie at 10 s, not with the retry at 16 s.
    #[test]
    fn termination_interrupts_and_reports_at_its_deadlines() {
        let mut termination = begin(&ZombieSettings::default());
        let interrupt = || vec![Act::Interrupt];
        let counted = vec![Act::CountZombie, Act::ReportZombie];
        let retries = [1_000, 2_000, 4_000, 8_000].map(|at| (at, interrupt()));
        assert_eq!(play(&mut termination, 9_999), retries);
        assert_eq!(termination.state(), Terminating);
        assert_eq!(play(&mut termination, 16_000), [(10_000, counted), (16_000, interrupt())]);
        assert_eq!(termination.state(), Zombie);
    }

    /// S3-20, S3-30, S3-31, S3-51: every moment of the default schedule, and the state at each second of the first
    /// hour.
    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut termination = begin(&ZombieSettings::default());
        let done = play(&mut termination, u64::MAX / 2_000_000);
        let first = [1, 2, 4, 8, 16, 32, 64].map(|s| s * 1_000);
        let then = (1..=58).map(|retry| 64_000 + retry * 60_000);
        let expected: Vec<u64> = first.into_iter().chain(then).collect();
        assert_eq!(times(&done, Act::Interrupt), expected);
        assert_eq!(expected.last(), Some(&3_544_000));
        assert_eq!(termination.interrupts(), 1 + 65);
        assert!(expected.windows(2).all(|pair| pair[1] - pair[0] <= 60_000));

        let mut termination = begin(&ZombieSettings::default());
        for second in 0..=3_700 {
            termination.tick(after(second * 1_000));
            let expected = match second {
                0..10 => Terminating,
                10..3_600 => Zombie,
                _ => Leaked,
            };
            assert_eq!(termination.state(), expected, "at {second} s");
        }
    }

    /// S3-32, C-21: at an hour the worker gives up on it: this is reported once, the code is never interrupted again,
    /// and it still counts.
    #[test]
    fn zombie_is_reported_as_leaked_after_an_hour_and_not_interrupted_again() {
        let mut termination = begin(&ZombieSettings::default());
        let done = play(&mut termination, 10_000_000);
        assert_eq!(done.last(), Some(&(3_600_000, vec![Act::ReportLeaked])));
        assert_eq!(times(&done, Act::CountZombie), [10_000]);
        assert_eq!(times(&done, Act::UncountZombie), [0; 0]);
        assert_eq!((termination.state(), termination.next()), (Leaked, None));
        assert_eq!(termination.tick(after(u64::MAX / 2_000_000)), []);
    }

    /// S3-26: code that stops in time is neither counted nor reported.
    #[test]
    fn code_that_stops_within_the_grace_period_is_not_logged() {
        for millis in [0, 100, 1_500, 9_999] {
            let mut termination = begin(&ZombieSettings::default());
            play(&mut termination, millis);
            assert_eq!(termination.finished(), []);
            assert_eq!((termination.state(), termination.next()), (Done, None));
            assert_eq!(termination.tick(after(20_000)), []);
        }
    }

    /// S3-22, C-21: a zombie that ends counts no more, and neither does leaked code that ends. The end is reported
    /// once.
    #[test]
    fn a_zombie_that_ends_is_uncounted_once() {
        for millis in [10_000, 3_600_000] {
            let mut termination = begin(&ZombieSettings::default());
            play(&mut termination, millis);
            assert_eq!(termination.finished(), [Act::UncountZombie, Act::ReportEnded]);
            assert_eq!(termination.finished(), []);
            assert_eq!(termination.state(), Done);
        }
    }

    /// T-12: a late tick performs all that was due, in order, and does not interrupt four times in a row.
    #[test]
    fn a_late_tick_does_what_was_due_and_interrupts_once() {
        let mut termination = begin(&ZombieSettings::default());
        assert_eq!(termination.tick(after(11_000)), [Act::Interrupt, Act::CountZombie, Act::ReportZombie]);
        assert_eq!(termination.next(), Some(after(16_000)), "and keeps its schedule");
        let mut termination = begin(&ZombieSettings::default());
        let all = [Act::Interrupt, Act::CountZombie, Act::ReportZombie, Act::ReportLeaked];
        assert_eq!(termination.tick(after(4_000_000)), all);
    }

    /// S3-50, S3-52, S3-53: other settings give other times.
    #[test]
    fn deadlines_of_a_termination_follow_the_settings() {
        let (ms, s) = (Duration::from_millis, Duration::from_secs);
        let settings = ZombieSettings {
            retry_interval: ms(200),
            retry_max_delay: s(5),
            grace_period: s(3),
            give_up_after: s(30),
            ..ZombieSettings::default()
        };
        let mut termination = begin(&settings);
        let done = play(&mut termination, 1_000_000);
        let retries = [200, 400, 800, 1_600, 3_200, 6_400, 11_400, 16_400, 21_400, 26_400];
        assert_eq!(times(&done, Act::Interrupt), retries);
        assert_eq!(times(&done, Act::CountZombie), [3_000]);
        assert_eq!(times(&done, Act::ReportLeaked), [30_000]);
    }

    /// C-21: settings that no configuration lets through still lead to an end.
    #[test]
    fn termination_with_settings_of_zero_ends_at_once() {
        let zero = Duration::ZERO;
        let settings = ZombieSettings {
            retry_interval: zero,
            retry_max_delay: zero,
            grace_period: zero,
            give_up_after: zero,
            ..ZombieSettings::default()
        };
        let mut termination = begin(&settings);
        assert_eq!(termination.next(), Some(BEGIN));
        assert_eq!(termination.tick(BEGIN), [Act::CountZombie, Act::ReportZombie, Act::ReportLeaked]);
        let (mut termination, _) = Termination::begin(Timestamp(u64::MAX), &ZombieSettings::default());
        assert_eq!(termination.tick(Timestamp(u64::MAX)).len(), 3, "at the end of time all is over");
    }

    /// C-21: the drawing at the top of this file, the code, and the behaviour of terminations agree.
    #[test]
    fn the_drawing_shows_every_arrow_and_every_arrow_is_taken() {
        let drawn: BTreeSet<String> = include_str!("termination.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("//! "))
            .filter(|line| line.contains("──▶"))
            .map(str::to_owned)
            .collect();
        let show = |state: TerminationState, input: Input| {
            let (next, acts) = arrow(state, input)?;
            let acts: Vec<String> = acts.iter().map(|act| format!("{act:?}")).collect();
            let colon = if acts.is_empty() { "" } else { ": " };
            Some(format!("{state:?} ──{input:?}──▶ {next:?}{colon}{}", acts.join(", ")))
        };
        let inputs = [Input::Grace, Input::GiveUp, Input::Retry, Input::Finished];
        let pairs =
            [Terminating, Zombie, Leaked, Done].into_iter().flat_map(|state| inputs.map(|input| (state, input)));
        let coded: BTreeSet<String> = pairs.filter_map(|(state, input)| show(state, input)).collect();
        assert_eq!(coded, drawn);

        let mut taken = BTreeSet::new();
        for end in [0, 500, 10_000, 20_000, 3_600_000] {
            let mut termination = begin(&ZombieSettings::default());
            play(&mut termination, end);
            termination.finished();
            termination.finished();
            taken.extend(termination.taken.iter().filter_map(|(state, input)| show(*state, *input)));
        }
        assert_eq!(taken, drawn);
    }
}
