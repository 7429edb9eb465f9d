//! Every way of playing a generated program comes to the same.

use crate::examine::{all_plays_agree, examine_all, programs};

/// S0-1, S0-57, S1-55, S2-15
#[test]
fn all_plays_of_a_program_agree() {
    let coverage = examine_all(0..programs(8_000), all_plays_agree);
    println!("{}", coverage.table());
    coverage.assert_at_least(5.0);
}
