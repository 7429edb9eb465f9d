//! The settings that a run keeps for life, as the language flags of Temporal's records. The server records the flags that the first
//! workflow task used, and a replay is told of them before any code runs.

use dacapo_core::{Order, Pins, PolicySpec, SEMANTICS};

/// Flags from here on name a version of the rules of play: this is version 1.
const SEMANTICS_FROM: u32 = 1;
/// The most versions that fit below the next flag.
const MOST_SEMANTICS: u32 = 99;
/// The run plays the workflow function before handlers.
const ROOT_FIRST: u32 = 100;

/// Returns the flags of a run with these settings.
pub(crate) fn flags_of(pins: &Pins) -> Vec<u32> {
    let mut flags = vec![SEMANTICS_FROM + pins.semantics - 1];
    if pins.order == Order::RootFirst {
        flags.push(ROOT_FIRST);
    }
    flags
}

/// Returns the settings of a run that has these flags. Without any it was recorded by a worker of another kind, or by none yet.
pub(crate) fn pins_of(flags: &[u32]) -> Option<Pins> {
    let semantics = flags.iter().find(|flag| (SEMANTICS_FROM..=MOST_SEMANTICS).contains(*flag))?;
    let order = if flags.contains(&ROOT_FIRST) { Order::RootFirst } else { Order::HandlersFirst };
    Some(Pins { semantics: semantics - SEMANTICS_FROM + 1, order, policy: PolicySpec::Deterministic })
}

/// Returns the settings of a run: recorded ones, or those of its workflow if nothing is recorded yet.
pub(crate) fn settings(replaying: bool, flags: &[u32], of_workflow: Option<&Pins>) -> Pins {
    let recorded = if replaying { pins_of(flags) } else { None };
    recorded.or_else(|| of_workflow.cloned()).unwrap_or(Pins { semantics: SEMANTICS, ..Pins::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_from_their_flags() {
        for order in [Order::RootFirst, Order::HandlersFirst] {
            for semantics in [1, 2, 99] {
                let pins = Pins { semantics, order, policy: PolicySpec::Deterministic };
                assert_eq!(pins_of(&flags_of(&pins)), Some(pins));
            }
        }
        assert_eq!(pins_of(&[]), None);
    }

    #[test]
    fn recorded_settings_hold_whatever_the_workflow_prefers_now() {
        let recorded = Pins { order: Order::RootFirst, ..Pins::default() };
        let now = Pins::default();
        assert_eq!(settings(true, &flags_of(&recorded), Some(&now)), recorded);
        assert_eq!(settings(false, &flags_of(&recorded), Some(&now)), now);
        assert_eq!(settings(true, &[], None), Pins::default());
    }
}
