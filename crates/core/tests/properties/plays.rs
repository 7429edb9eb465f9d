//! Every way of playing a generated program comes to the same.

use dacapo_core::{Job, Pins, PolicySpec, Signal};

use crate::examine::{Case, all_plays_agree, check_all, programs};
use crate::world::{new_run, play_turn};

/// S0-1, S0-57, S1-55, S2-15
#[test]
fn all_plays_of_a_program_agree() {
    let coverage = check_all(0..programs(8_000), all_plays_agree);
    println!("{}", coverage.table());
    coverage.assert_at_least(5.0);
}

/// Whatever comes late for what was cancelled, dropped or detached counts like a message that no unit takes.
///
/// S0-57
#[test]
fn generated_program_decides_nothing_on_a_late_result() {
    check_all(12_000_000..12_000_000 + programs(400), |case, marks| {
        let pins = Pins { policy: PolicySpec::Deterministic, ..case.pins.clone() };
        let case = Case { pins, ..case.clone() };
        let recording = case.record(marks)?;
        let mut run = new_run(&case.workflow(), &case.pins);
        for (turn, done) in &recording.turns {
            let pending = run.inspect().pending;
            let mut turn = turn.clone();
            for job in &mut turn.jobs {
                if matches!(job, Job::Resolve { seq, .. } if pending.iter().all(|known| known.seq != *seq)) {
                    *job = Job::Signal(Box::new(Signal { name: "absent".into(), ..Signal::default() }));
                }
            }
            let again = play_turn(&mut run, turn.clone())?;
            if again.commands != done.commands {
                return Err(format!("without late results, {turn:#?}\ncomes to {again:#?}\nand was {done:#?}"));
            }
        }
        Ok(())
    });
}
