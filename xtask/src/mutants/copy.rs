//! The copies of the tree in which mutants are tried. Each has its own build, which stays warm from one run to the next.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::home;
use crate::tree;

/// A copy of the tree.
pub(super) struct Copy {
    pub(super) folder: PathBuf,
}

impl Copy {
    /// Makes copy `number` equal to the tree. Files that are equal already keep their times, so that they are not built again.
    pub(super) fn sync(root: &Path, number: usize) -> Result<Self> {
        let folder = home(root).join(format!("tree-{number}"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let wanted = tree::paths(root)?;
        for path in tree::paths(&folder)? {
            if wanted.binary_search(&path).is_err() && !path.starts_with("target/") {
                fs::remove_file(folder.join(&path)).with_context(|| format!("cannot remove {path} of the copy"))?;
            }
        }
        for path in wanted {
            let (from, to) = (root.join(&path), folder.join(&path));
            let text = fs::read(&from).with_context(|| format!("cannot read {path}"))?;
            if fs::read(&to).ok().as_ref() != Some(&text) {
                fs::create_dir_all(to.parent().unwrap_or(&folder))?;
                fs::write(&to, text).with_context(|| format!("cannot write {}", to.display()))?;
                fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
            }
        }
        Ok(Self { folder })
    }
}
