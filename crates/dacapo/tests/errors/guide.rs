//! The guide quotes errors as they are.

use std::fs;
use std::path::{Path, PathBuf};

/// All texts of the library, and the errors that were caused.
fn texts(root: &Path) -> String {
    let mut all = fs::read_to_string(root.join("crates/dacapo/tests/golden/errors.txt")).unwrap();
    let mut folders: Vec<PathBuf> = vec![root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|extension| extension == "rs") => {
                    all.push_str(&fs::read_to_string(path).unwrap());
                }
                false => {}
            }
        }
    }
    all
}

#[test]
fn errors_that_the_guide_quotes_stand_in_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/troubleshoot.md")).unwrap();
    let texts = texts(&root);
    let cells = guide.lines().filter_map(|line| Some(line.strip_prefix("| ")?.split_once(" |")?.0));
    let mut pieces = 0;
    for quote in cells.filter_map(|cell| cell.strip_prefix('`')?.strip_suffix('`')) {
        for piece in quote.split('…').map(|piece| piece.trim_matches(['"', ' '])).filter(|piece| piece.len() > 3) {
            let in_source = piece.replace('"', "{");
            assert!(texts.contains(piece) || texts.contains(&in_source), "`{quote}`: no text has {piece:?}");
            pieces += 1;
        }
    }
    assert!(pieces > 30, "{pieces} pieces of texts");
}
