//! The tree does not say where crates come from: a mirror that one machine uses must not reach another.

use super::Finding;
use crate::tree::Tree;

/// The one source a lock file may name.
const PUBLIC: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// This file has to say what it looks for.
const OWN: &str = "xtask/src/tidy/registries.rs";

const HOSTS: &[&str] = &["index.crates.io", "static.crates.io", "registry+", "sparse+"];
const SETTINGS: &[&str] = &["[source", "[registries", "[registry", "replace-with", "registry ="];

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.files().filter(|source| source.path != OWN) {
        let is_config = source.path.starts_with(".cargo/") || source.file_name() == "Cargo.toml";
        for (line, text) in source.lines() {
            let text = if source.file_name() == "Cargo.lock" { text.replace(PUBLIC, "") } else { text.to_owned() };
            let host = HOSTS.iter().find(|host| text.contains(*host));
            let setting = SETTINGS.iter().find(|setting| is_config && text.trim_start().starts_with(*setting));
            findings.extend(host.or(setting).map(|name| Finding::new(source, line, format!("`{name}`"))));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    #[test]
    fn a_registry_is_found_in_configuration_lock_and_text() {
        let public = format!("source = \"{PUBLIC}\"\nsource = \"registry+https://mirror.example/index\"\n");
        let tree = Tree::of(&[
            ("Cargo.lock", &public),
            (".cargo/config.toml", "[alias]\n[source.crates-io]\nreplace-with = \"near\"\n"),
            ("docs/a.md", "Fetched from index.crates.io.\n[source] is fine here.\n"),
        ]);
        let expected = [
            "Cargo.lock:2: `registry+`",
            ".cargo/config.toml:2: `[source`",
            ".cargo/config.toml:3: `replace-with`",
            "docs/a.md:1: `index.crates.io`",
        ];
        assert_eq!(shown(&find(&tree)), expected);
    }
}
