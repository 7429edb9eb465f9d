//! The name of the build that runs, for programs that give none.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use dacapo_core::{Name, Timestamp};

/// The most letters of a program's name: the name of the build is in every turn.
const LONGEST: usize = 32;

/// Names the running build by its program and by when its file was written, as in `shop 2026-11-18T14:22:05Z`: that differs
/// from deploy to deploy.
pub(super) fn build_name() -> Name {
    let path = std::env::current_exe().ok();
    path.as_deref().map_or(Name::from_static("unknown"), name_of)
}

fn name_of(program: &Path) -> Name {
    let stem = program.file_stem().map_or_else(|| "unknown".into(), |stem| stem.to_string_lossy());
    let stem: String = stem.chars().take(LONGEST).collect();
    let written = program.metadata().and_then(|file| file.modified()).ok();
    let since = written.and_then(|written| written.duration_since(UNIX_EPOCH).ok());
    match since {
        Some(since) => format!("{stem} {}", Timestamp(0).after(Duration::from_secs(since.as_secs()))).into(),
        None => stem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_is_named_by_its_program_and_when_it_was_written() {
        let name = build_name();
        assert!(name.starts_with("dacapo-") && name.ends_with('Z'), "{name}");
        assert_eq!(name, build_name());
        assert_eq!(name_of(Path::new("/nowhere/shop.exe")), "shop");
        assert_eq!(name_of(&Path::new("/nowhere").join("x".repeat(100))), "x".repeat(LONGEST).as_str());
    }
}
