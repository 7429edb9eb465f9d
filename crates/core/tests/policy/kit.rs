//! What the policy tests share.

use dacapo_core::{
    Action, Choice, ChoiceLog, Enabled, LogHeader, Name, Policy, PolicyError, PolicyKind, PolicyOptions, Rng,
    Scheduler, Seg, UnitId,
};

pub(crate) fn id(text: &str) -> UnitId {
    text.parse().unwrap()
}

pub(crate) fn ids<const N: usize>(texts: [&str; N]) -> Vec<UnitId> {
    texts.map(id).to_vec()
}

/// `unit("[p0]")`
pub(crate) fn unit(text: &str) -> Action {
    Action::Unit(id(text))
}

pub(crate) fn units<const N: usize>(texts: [&str; N]) -> Vec<Action> {
    texts.map(unit).to_vec()
}

pub(crate) fn xor(number: u32) -> Action {
    Action::branch(number).unwrap()
}

/// The branches `[p0]` to `[p(n-1)]`.
pub(crate) fn branches(n: u32) -> Vec<UnitId> {
    (0..n).map(|index| UnitId::root().child(Seg::P(index))).collect()
}

pub(crate) fn actions(n: u32) -> Vec<Action> {
    branches(n).into_iter().map(Action::Unit).collect()
}

pub(crate) fn deterministic() -> Scheduler {
    Scheduler::new(PolicyKind::Deterministic, PolicyOptions::default()).unwrap()
}

pub(crate) fn random(seed: u64) -> Scheduler {
    Scheduler::new(PolicyKind::Random, PolicyOptions { seed: Some(seed), ..PolicyOptions::default() }).unwrap()
}

/// A policy of the user's own, which takes the last.
pub(crate) struct Last;

impl Policy for Last {
    fn choose(&mut self, enabled: &Enabled<'_>) -> Result<usize, PolicyError> {
        Ok(enabled.len() - 1)
    }
}

pub(crate) fn last() -> Scheduler {
    Scheduler::with_policy("last", Box::new(Last))
}

pub(crate) fn choice(step: u64, enabled: &[Action], chosen: &Action) -> Choice {
    Choice { step, enabled: enabled.to_vec(), chosen: chosen.clone() }
}

pub(crate) fn by_hand() -> LogHeader {
    LogHeader { algorithm: Name::from_static("by hand"), version: 0, seed: None }
}

pub(crate) fn log(choices: impl IntoIterator<Item = Choice>) -> ChoiceLog {
    ChoiceLog::from_choices(by_hand(), choices).unwrap()
}

/// A list in an order that the generator makes.
pub(crate) fn shuffled(list: &[Action], rng: &mut Rng) -> Vec<Action> {
    let mut list = list.to_vec();
    for place in (1..list.len()).rev() {
        list.swap(place, rng.below(place as u64 + 1) as usize);
    }
    list
}

/// Who went, and which branch it took.
pub(crate) type Trace = Vec<(UnitId, u32)>;

/// Plays rounds of these units with a branch point of three in each step; what happened, in order.
pub(crate) fn play(scheduler: &mut Scheduler, rounds: &[Vec<UnitId>]) -> Result<Trace, PolicyError> {
    let mut trace = Vec::new();
    for round in rounds {
        scheduler.begin_round(round.clone())?;
        while let Some(unit) = scheduler.next_unit(&mut |_| true)? {
            trace.push((unit, scheduler.pick_branch(3)?));
        }
    }
    Ok(trace)
}

/// Whether counts that should be equal are so by the χ² test, with one false alarm in a thousand.
pub(crate) fn is_uniform(counts: &[u64]) -> bool {
    // The critical values for 1 to 9 degrees of freedom and p = 0.001.
    const CRITICAL: [f64; 9] = [10.828, 13.816, 16.266, 18.467, 20.515, 22.458, 24.322, 26.124, 27.877];
    let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    let chi_squared: f64 = counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
    chi_squared < CRITICAL[counts.len() - 2]
}

/// The test of the test: it tells a fair die from a loaded one.
#[test]
fn the_uniformity_test_refuses_a_loaded_die() {
    assert!(is_uniform(&[1000, 1010, 990, 1005, 995, 1000]));
    assert!(!is_uniform(&[1000, 1000, 1000, 1000, 1000, 1200]));
}
