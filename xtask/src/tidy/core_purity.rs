//! The core is pure: it reaches no clock, thread, file, network, process, runtime, output or hash order.
//!
//! This is the one place that checks it. Names of the standard library are refused unless they are on a list, so that no alias, `cfg` or
//! `allow` gets around it, and the core depends on a short list of crates that only encode data.

mod dependencies;
mod names;

use anyhow::Result;

use super::Finding;
use crate::tree::Tree;

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let mut findings = names::find(tree);
    findings.extend(dependencies::find(tree)?);
    Ok(findings)
}
