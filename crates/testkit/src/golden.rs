//! Golden files: what a format looks like on disk, kept for ever.

use std::path::{Path, PathBuf};

/// The environment variable that lets [`assert_golden`] write a file that is not there yet.
pub const WRITE_GOLDEN: &str = "DACAPO_WRITE_GOLDEN";

/// Compares what the writer of a format gives today with the golden file of the format's number, byte for byte, and
/// returns what the file holds, for the reader. `manifest` is the folder of the crate; the file is
/// `tests/golden/NAME-vNUMBER.EXTENSION` in it.
///
/// # Panics
/// If they differ, with the first line that does and with what to do; or if there is no such file. Then
/// `DACAPO_WRITE_GOLDEN=1` writes it. A file that is there is never written again.
pub fn assert_golden(manifest: &str, name: &str, number: u64, extension: &str, written: &str) -> String {
    compare(manifest, (name, number, extension), written, std::env::var_os(WRITE_GOLDEN).is_some())
}

fn compare(manifest: &str, format: (&str, u64, &str), written: &str, may_write: bool) -> String {
    let (name, number, extension) = format;
    let file = golden_file(manifest, name, number, extension);
    if !file.exists() {
        assert!(
            may_write,
            "{name}: format {number} has no golden file {}. If the number is new, write the file with {WRITE_GOLDEN}=1 and \
             commit it",
            file.display()
        );
        write_new(&file, written);
    }
    let kept = std::fs::read_to_string(&file).expect("a golden file is text");
    if kept == written {
        return kept;
    }
    let lines = kept.lines().zip(written.lines());
    let (line, (kept, written)) = (1..)
        .zip(lines)
        .find(|(_, (kept, written))| kept != written)
        .unwrap_or((kept.lines().count().min(written.lines().count()) + 1, ("the end, or another end of line", "…")));
    panic!(
        "{name}: what is written now is not what format {number} is ({}, line {line}):\n  kept:    {kept}\n  written: {written}\n\
         Give the format a new number and add a golden file: raise the number in the code, write {name}-v{}.{extension} with \
         {WRITE_GOLDEN}=1, and keep the old file. docs/compatibility.md says where the number is.",
        file.display(),
        number + 1
    );
}

fn golden_file(manifest: &str, name: &str, number: u64, extension: &str) -> PathBuf {
    Path::new(manifest).join("tests/golden").join(format!("{name}-v{number}.{extension}"))
}

fn write_new(file: &Path, written: &str) {
    std::fs::create_dir_all(file.parent().expect("a file is in a folder")).expect("the folder of golden files");
    std::fs::write(file, written).expect("a golden file can be written");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message of a panic.
    fn refused(folder: &Path, written: &str) -> String {
        let manifest = folder.to_str().expect("a path of text").to_owned();
        let written = written.to_owned();
        let refused = std::panic::catch_unwind(move || compare(&manifest, ("log", 1, "txt"), &written, false));
        *refused.expect_err("it is refused").downcast::<String>().expect("a text")
    }

    #[test]
    fn change_without_a_new_number_is_refused_with_what_to_do() {
        let folder = std::env::temp_dir().join(format!("dacapo-golden-{}", std::process::id()));
        let file = golden_file(folder.to_str().expect("a path of text"), "log", 1, "txt");
        assert!(refused(&folder, "a\nb\n").contains("write the file with DACAPO_WRITE_GOLDEN=1"));
        write_new(&file, "a\nb\n");
        assert_eq!(assert_golden(folder.to_str().expect("a path of text"), "log", 1, "txt", "a\nb\n"), "a\nb\n");
        let message = refused(&folder, "a\nc\n");
        for words in
            ["line 2", "kept:    b", "written: c", "Give the format a new number and add a golden file", "log-v2.txt"]
        {
            assert!(message.contains(words), "{words}: {message}");
        }
        assert!(refused(&folder, "a\nb\nc\n").contains("line 3"));
        std::fs::remove_dir_all(folder).expect("the folder can be removed");
    }
}
