//! What the sources of the policies must not contain.

use std::fs;
use std::path::Path;

fn sources() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap())).collect()
}

/// S1-58: sorting actions is stable by contract. S1-72: a scheduler belongs to one run and has no locks. S1-42: nothing
/// is shared between schedulers. C-18: nothing is drawn from time.
#[test]
fn policies_use_no_unstable_sort_no_locks_no_shared_state_and_no_clock() {
    let banned = [
        "sort_unstable",
        "Mutex",
        "RwLock",
        "Atomic",
        "static ",
        "thread_local",
        "HashMap",
        "std::time",
        "std::thread",
        "std::io",
        "unsafe",
    ];
    let sources = sources();
    assert!(sources.len() > 10);
    for (path, text) in sources {
        for word in banned {
            assert!(!text.contains(word), "{path} uses {word}");
        }
    }
}

/// S1-14: the generator is ours and the scheduler needs nothing that the core does not have anyway.
#[test]
fn policies_need_no_crate_beyond_those_that_encode() {
    let known = ["std", "core", "minicbor", "serde", "serde_json", "thiserror", "crate", "super"];
    for (path, text) in sources() {
        for line in text.lines().filter_map(|line| line.strip_prefix("use ")) {
            let root = line.split("::").next().unwrap();
            assert!(known.contains(&root), "{path} uses {root}");
        }
    }
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    assert!(!dependencies.contains("rand"), "{dependencies}");
}
