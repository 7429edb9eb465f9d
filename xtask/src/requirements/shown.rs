//! What the tests say they show.

use std::collections::{BTreeMap, BTreeSet};

use super::id::{Id, ids_in};
use crate::test_fn::TestFn;

/// Which tests name which id.
#[derive(Debug, Default)]
pub(super) struct Shown {
    by_id: BTreeMap<Id, BTreeSet<String>>,
    /// Tests that name an id and assert nothing, with their place.
    pub(super) hollow: Vec<(String, Id)>,
    /// All ids that asserting tests name, with the test's place.
    pub(super) named: Vec<(String, Id)>,
    all: BTreeSet<String>,
}

impl Shown {
    pub(super) fn by(tests: &[TestFn]) -> Self {
        let mut shown = Self::default();
        for test in tests {
            let place = format!("{}:{}: `{}`", test.file, test.line, test.name);
            shown.all.insert(test.name.clone());
            for id in ids_in(&test.doc) {
                if test.asserts {
                    shown.by_id.entry(id).or_default().insert(test.name.clone());
                    shown.named.push((place.clone(), id));
                } else {
                    shown.hollow.push((place.clone(), id));
                }
            }
        }
        shown
    }

    /// The tests that show a requirement, sorted by name.
    pub(super) fn tests(&self, id: &Id) -> Vec<&str> {
        self.by_id.get(id).into_iter().flatten().map(String::as_str).collect()
    }

    pub(super) fn exists(&self, test: &str) -> bool {
        self.all.contains(test)
    }
}
