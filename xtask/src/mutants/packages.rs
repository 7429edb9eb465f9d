//! Which packages' tests are run for a mutant of a package.

/// A package and the packages whose tests are run for its mutants: first its own, and only for what they miss the others.
const TESTS: &[(&str, &[&[&str]])] = &[
    ("dacapo-core", &[&["dacapo-core"], &["dacapo-engine"]]),
    ("dacapo-store", &[&["dacapo-store", "dacapo-sqlite"], &["dacapo-engine"]]),
    ("dacapo-sqlite", &[&["dacapo-sqlite"], &["dacapo-engine", "dacapo"]]),
    ("dacapo-postgres", &[&["dacapo-postgres"]]),
    ("dacapo-sys", &[&["dacapo-sys"], &["dacapo-sqlite"]]),
    ("dacapo-worker", &[&["dacapo-worker"], &["dacapo-engine", "dacapo"]]),
    ("dacapo-engine", &[&["dacapo-engine"], &["dacapo"]]),
    ("dacapo-macros", &[&["dacapo-macros"], &["dacapo"]]),
    ("dacapo", &[&["dacapo"], &["dacapo-testkit"]]),
];

/// The stages of tests for a package's mutants. A package that the table does not name has its own tests only.
pub(super) fn stages(package: &str) -> Vec<Vec<String>> {
    let owned = |stage: &&[&str]| stage.iter().map(|name| (*name).to_owned()).collect();
    match TESTS.iter().find(|(name, _)| *name == package) {
        Some((_, stages)) => stages.iter().map(owned).collect(),
        None => vec![vec![package.to_owned()]],
    }
}

/// The packages whose tests need a PostgreSQL server, each with the feature that they are behind.
const ON_A_SERVER: &[(&str, &str)] = &[("dacapo-postgres", "dacapo-postgres/conformance")];

/// Returns the features without which some tests of these packages are left out. They need a PostgreSQL server.
pub(super) fn features_on_a_server(packages: &[String]) -> Vec<&'static str> {
    ON_A_SERVER
        .iter()
        .filter(|(name, _)| packages.iter().any(|given| given == name))
        .map(|(_, feature)| *feature)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_table_exist() {
        let tree = crate::tree::Tree::load(&crate::root()).unwrap();
        let manifests: Vec<_> = tree.files().filter(|source| source.file_name() == "Cargo.toml").collect();
        for name in TESTS.iter().flat_map(|(name, stages)| stages.iter().copied().flatten().chain([name])) {
            let line = format!("name = \"{name}\"\n");
            assert!(manifests.iter().any(|source| source.text.contains(&line)), "{name}");
        }
    }

    #[test]
    fn mutant_is_tried_with_the_tests_of_its_own_crate_first() {
        assert_eq!(stages("dacapo-engine")[0], ["dacapo-engine"]);
        assert_eq!(stages("dacapo-faults"), [["dacapo-faults"]]);
    }

    #[test]
    fn tests_that_need_a_server_are_run_for_the_packages_that_have_some() {
        let features = |package: &str| features_on_a_server(&[package.to_owned()]);
        assert_eq!(
            (features("dacapo-postgres"), features("dacapo-store")),
            (vec!["dacapo-postgres/conformance"], vec![])
        );
    }
}
