//! Code that kills its own process, on a file.

use crate::hazard::{self, Hazard};

fn assert_quarantined(way: &'static str, words: &[&str]) {
    hazard::assert_quarantined(&Hazard::on(None, way), words);
}

#[test]
fn an_activity_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("activity", &["activity \"explode\"", "quarantined: it is not tried until it is released"]);
}

#[test]
fn a_turn_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("turn", &["workflow \"deadly\""]);
}

#[test]
fn a_turn_that_overflows_its_stack_is_quarantined_after_three_deaths() {
    assert_quarantined("overflow", &["workflow \"deadly\""]);
}

/// Nothing of it is stored when it kills its process for the first time; its caller starts it again and again.
#[test]
fn a_first_turn_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("first-turn", &["workflow \"deadly\""]);
}

#[test]
fn local_work_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("local-activity", &["workflow \"deadly\""]);
    assert_quarantined("closure", &["workflow \"deadly\""]);
}

#[test]
fn query_that_kills_its_process_is_quarantined_after_three_deaths() {
    assert_quarantined("query", &["it is not asked: ", "workflow \"deadly\""]);
    assert_quarantined("busy-query", &["it is not asked: ", "workflow \"deadly\""]);
}
