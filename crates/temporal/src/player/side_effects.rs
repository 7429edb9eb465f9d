//! The side effects of a run: closures of the workflow that run between two turns.
//!
//! ```text
//!   scheduled ──▶ running ──(result, or a failure that is final)──▶ resolved
//!                  ▲   └────(a failure after which another attempt follows)──▶ pausing
//!                  └───────────────────(the timer of the pause fires)─────────────┘
//! ```
//!
//! The first attempt has the number of the operation. Timers and later attempts have numbers of this backend, which begin where those
//! of operations never come. A closure is spent after one attempt, so the run leaves memory during the pause and is played again:
//! then it has the closure anew. While other local work of the run is open it stays, because its workflow task would be lost; an
//! attempt that finds no closure then is recorded as one that did not run, and the pause begins again. What is decided here follows
//! from the history alone.

use std::collections::BTreeMap;
use std::time::Duration;

use dacapo_core::{
    ActivityFailed, Failure, FailureKind, Outcome, Payload, RetryState, ScheduleSideEffect, Seq, Timestamp,
};

use crate::numbers::to_temporal;

/// The first number that this backend gives itself.
const FIRST_OWN: u32 = 1 << 31;
/// The type of a failed attempt after which another one follows; its first detail is the pause in milliseconds.
const ANOTHER_ATTEMPT: &str = "dacapo:another-attempt";
/// The second detail of an attempt that did not run.
const DID_NOT_RUN: &str = "\"did not run\"";
/// The pause after an attempt that did not run, because the closure was not in memory.
const NO_CLOSURE: Duration = Duration::from_secs(1);

/// One side effect that has no result yet.
struct Pending {
    command: ScheduleSideEffect,
    attempt: u32,
    first_scheduled: Timestamp,
    /// The number of the attempt that runs or of the timer of the pause.
    number: u32,
    pauses: bool,
}

/// An attempt of a side effect that is to be run.
#[derive(Clone, Debug)]
pub(crate) struct NextAttempt {
    pub(crate) seq: Seq,
    pub(crate) command: ScheduleSideEffect,
    pub(crate) activity_id: String,
    pub(crate) number: u32,
    pub(crate) attempt: u32,
    pub(crate) first_scheduled: Timestamp,
}

/// The consequence of an event of a side effect.
pub(crate) enum Next {
    /// It is resolved.
    Resolve(Seq, Outcome),
    /// A timer of this number and duration is started, and the run leaves memory when it can.
    Pause(u32, Duration),
    /// An attempt begins.
    Attempt(NextAttempt),
}

/// The pending side effects of a run.
#[derive(Default)]
pub(crate) struct SideEffects {
    pending: BTreeMap<Seq, Pending>,
    by_number: BTreeMap<u32, Seq>,
    given: u32,
}

impl SideEffects {
    /// Notes a side effect that the workflow asked for. Returns its first attempt.
    pub(crate) fn begin(&mut self, command: &ScheduleSideEffect, now: Timestamp) -> NextAttempt {
        let number = to_temporal(command.seq);
        let pending = Pending { command: command.clone(), attempt: 1, first_scheduled: now, number, pauses: false };
        let next = pending.next_attempt();
        self.by_number.insert(number, command.seq);
        self.pending.insert(command.seq, pending);
        next
    }

    /// Whether this number is of a side effect.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.by_number.contains_key(&number)
    }

    /// Returns what follows from the end of an attempt. None if the number is of no side effect.
    pub(crate) fn attempt_ended(&mut self, number: u32, outcome: Outcome) -> Option<Next> {
        let seq = self.by_number.remove(&number)?;
        let pause = if let Outcome::Failed(failure) = &outcome { pause_of(failure) } else { None };
        let Some(Pause { length, has_run }) = pause else {
            // None if the workflow has cancelled it meanwhile.
            let pending = self.pending.remove(&seq)?;
            return Some(Next::Resolve(seq, final_outcome(&pending, outcome)));
        };
        let timer = self.own_number();
        let pending = self.pending.get_mut(&seq)?;
        (pending.number, pending.pauses) = (timer, true);
        pending.attempt += u32::from(has_run);
        self.by_number.insert(timer, seq);
        Some(Next::Pause(timer, length))
    }

    /// Returns the attempt that follows from a timer that has fired. None if it is not the timer of a pause.
    pub(crate) fn timer_fired(&mut self, number: u32) -> Option<Next> {
        let seq = self.by_number.remove(&number)?;
        let own = self.own_number();
        let pending = self.pending.get_mut(&seq)?;
        (pending.number, pending.pauses) = (own, false);
        let next = pending.next_attempt();
        self.by_number.insert(own, seq);
        Some(Next::Attempt(next))
    }

    /// Forgets a side effect that the workflow cancelled. Returns the number of what runs for it, and whether that is a timer.
    pub(crate) fn cancel(&mut self, seq: Seq) -> Option<(u32, bool)> {
        let pending = self.pending.remove(&seq)?;
        if pending.pauses {
            self.by_number.remove(&pending.number);
        }
        Some((pending.number, pending.pauses))
    }

    /// Whether an attempt of this number is open for a side effect that the workflow has not cancelled.
    pub(crate) fn is_wanted(&self, number: u32) -> bool {
        self.by_number.get(&number).is_some_and(|seq| self.pending.contains_key(seq))
    }

    /// Whether an attempt runs, or has not told its end since it was cancelled.
    pub(crate) fn has_open_attempts(&self) -> bool {
        let is_timer = |number, seq| self.pending.get(seq).is_some_and(|it| it.pauses && it.number == number);
        self.by_number.iter().any(|(number, seq)| !is_timer(*number, seq))
    }

    /// The side effects that wait for their next attempt.
    pub(crate) fn pausing(&self) -> impl Iterator<Item = Seq> {
        self.pending.iter().filter(|(_, pending)| pending.pauses).map(|(seq, _)| *seq)
    }

    fn own_number(&mut self) -> u32 {
        self.given += 1;
        FIRST_OWN + self.given
    }
}

impl Pending {
    fn next_attempt(&self) -> NextAttempt {
        let id = self.command.id;
        let activity_id = if self.attempt == 1 { id.to_string() } else { format!("{id}-{}", self.attempt) };
        NextAttempt {
            seq: self.command.seq,
            command: self.command.clone(),
            activity_id,
            number: self.number,
            attempt: self.attempt,
            first_scheduled: self.first_scheduled,
        }
    }
}

/// The failure that makes another attempt follow after a pause.
pub(crate) fn another_attempt(failure: &Failure, pause: Duration) -> Failure {
    let mut marked = Failure::application(format!("another attempt follows: {failure}")).typed(ANOTHER_ATTEMPT);
    marked.details = vec![Payload::json(pause.as_millis().to_string())];
    marked.non_retryable()
}

/// The failure of an attempt that did not run, because its closure is not in memory: spent by the attempt before, or by one whose end
/// the run does not know. It does not count as an attempt.
pub(crate) fn no_closure() -> Failure {
    let mut marked =
        another_attempt(&Failure::application("the closure of this side effect is not in memory"), NO_CLOSURE);
    marked.details.push(Payload::json(DID_NOT_RUN));
    marked
}

/// The pause before another attempt.
struct Pause {
    length: Duration,
    /// Whether the attempt before ran, and so counts.
    has_run: bool,
}

/// The failures of an outcome as the server wraps them, outermost first: of an activity, then of its code.
fn pause_of(failure: &Failure) -> Option<Pause> {
    let marked = failure.chain().find(|link| link.type_name.as_ref().is_some_and(|name| *name == ANOTHER_ATTEMPT))?;
    let millis = marked.details.first()?.as_text()?.parse().ok()?;
    let has_run = marked.details.get(1).and_then(Payload::as_text) != Some(DID_NOT_RUN);
    Some(Pause { length: Duration::from_millis(millis), has_run })
}

/// The outcome as the workflow sees it: a failure names the side effect and not the activity that carries it.
fn final_outcome(pending: &Pending, outcome: Outcome) -> Outcome {
    let Outcome::Failed(failure) = outcome else { return outcome };
    let cause = match &failure.kind {
        FailureKind::Activity(_) => failure.cause().unwrap_or(&failure).clone(),
        _ => *failure,
    };
    let command = &pending.command;
    let is_spent = command.retry.as_ref().is_none_or(|retry| retry.attempts > 0 && pending.attempt >= retry.attempts);
    let retry = match cause.kind {
        FailureKind::Timeout(_) => RetryState::Timeout,
        FailureKind::Cancelled => RetryState::CancelRequested,
        _ if is_spent => RetryState::MaximumAttemptsReached,
        _ => RetryState::NonRetryableFailure,
    };
    let failed = ActivityFailed { activity: command.name.clone(), id: command.id.to_string().into(), retry };
    let message = format!("side effect {} failed", command.name);
    Outcome::Failed(Box::new(Failure::new(FailureKind::Activity(Box::new(failed)), message).caused_by(cause)))
}

/// Whether a number is one that this backend gave itself.
pub(crate) fn is_own(number: u32) -> bool {
    number >= FIRST_OWN
}

#[cfg(test)]
mod tests {
    use dacapo_core::{Name, OperationId, Retry, Timeouts};

    use super::*;

    fn command() -> ScheduleSideEffect {
        ScheduleSideEffect {
            seq: Seq(3),
            id: OperationId::of(1, Seq(3)),
            name: Name::from("draw"),
            retry: Some(Retry::exponential()),
            timeouts: Timeouts::default(),
            summary: None,
        }
    }

    #[test]
    fn attempts_follow_each_other_with_pauses_until_one_is_final() {
        let mut effects = SideEffects::default();
        let first = effects.begin(&command(), Timestamp(5));
        assert_eq!((first.number, first.attempt), (3, 1));
        let failure = another_attempt(&Failure::application("no answer"), Duration::from_millis(250));
        let Some(Next::Pause(timer, pause)) = effects.attempt_ended(3, Outcome::Failed(Box::new(failure))) else {
            panic!("a pause follows");
        };
        assert!(is_own(timer) && !is_own(3));
        assert_eq!(pause, Duration::from_millis(250));
        let Some(Next::Attempt(second)) = effects.timer_fired(timer) else { panic!("an attempt follows") };
        assert_eq!((second.seq, second.attempt, second.first_scheduled), (Seq(3), 2, Timestamp(5)));
        assert_ne!(second.activity_id, first.activity_id);
        let done = effects.attempt_ended(second.number, Outcome::Completed(Payload::json("7")));
        assert!(matches!(done, Some(Next::Resolve(Seq(3), Outcome::Completed(_)))));
        assert!(effects.attempt_ended(second.number, Outcome::Completed(Payload::empty())).is_none());
    }

    #[test]
    fn attempt_that_found_no_closure_does_not_count() {
        let mut effects = SideEffects::default();
        effects.begin(&command(), Timestamp(5));
        let ended = effects.attempt_ended(3, Outcome::Failed(Box::new(no_closure())));
        let Some(Next::Pause(timer, NO_CLOSURE)) = ended else { panic!("a pause follows") };
        let Some(Next::Attempt(second)) = effects.timer_fired(timer) else { panic!("an attempt follows") };
        assert_eq!(second.attempt, 1);
    }

    #[test]
    fn attempt_is_open_until_its_end_is_known_and_a_pause_is_not() {
        let mut effects = SideEffects::default();
        effects.begin(&command(), Timestamp(5));
        assert!(effects.has_open_attempts() && effects.is_wanted(3));
        let failure = another_attempt(&Failure::application("no answer"), Duration::ZERO);
        let Some(Next::Pause(timer, _)) = effects.attempt_ended(3, Outcome::Failed(Box::new(failure))) else {
            panic!("a pause follows");
        };
        assert_eq!((effects.has_open_attempts(), effects.pausing().collect()), (false, vec![Seq(3)]));
        let Some(Next::Attempt(second)) = effects.timer_fired(timer) else { panic!("an attempt follows") };
        assert_eq!((effects.has_open_attempts(), effects.pausing().count()), (true, 0));
        effects.cancel(Seq(3));
        assert!(effects.has_open_attempts() && !effects.is_wanted(second.number), "it is cancelled and runs on");
        effects.attempt_ended(second.number, Outcome::Completed(Payload::empty()));
        assert!(!effects.has_open_attempts());
    }

    #[test]
    fn cancelled_side_effect_names_what_runs_for_it() {
        let mut effects = SideEffects::default();
        effects.begin(&command(), Timestamp(5));
        assert_eq!(effects.cancel(Seq(3)), Some((3, false)));
        assert_eq!(effects.cancel(Seq(3)), None);
        effects.begin(&command(), Timestamp(5));
        let failure = another_attempt(&Failure::application("no answer"), Duration::ZERO);
        let Some(Next::Pause(timer, _)) = effects.attempt_ended(3, Outcome::Failed(Box::new(failure))) else {
            panic!("a pause follows");
        };
        assert_eq!(effects.cancel(Seq(3)), Some((timer, true)));
        assert!(effects.timer_fired(timer).is_none());
    }
}
