//! `docs/operate.md` shows the table of meters and the lines that are logged, as they are in the code.

use std::fmt::Write;
use std::path::Path;

use dacapo_worker::all_meters;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

/// The lines of a section that are rows of its table.
fn rows(page: &str, section: &str) -> String {
    let text = page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no section {section}")).1;
    let text = text.split("\n## ").next().unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|row| [row, "\n"]).collect()
}

#[test]
fn the_page_for_operators_shows_the_table_of_meters() {
    let page = read("docs/operate.md");
    let mut table = String::new();
    for meter in all_meters() {
        let labels: Vec<String> = meter.labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(table, "| `{}` | {} | {} | {} |", meter.name, meter.kind, labels.join(", "), meter.about).unwrap();
    }
    assert_eq!(rows(&page, "Metrics"), table.replace("|  |", "| |"));
    let named = page.split(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|word| word.starts_with("dacapo_"));
    for word in named {
        assert!(all_meters().any(|meter| meter.name == word), "{word} is no meter");
    }
}

/// All source files of a crate, with texts that go over several lines as one.
fn code(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => text += &code(&path),
            false => text += &std::fs::read_to_string(path).unwrap(),
        }
    }
    text.split("\\\n").map(str::trim_start).collect()
}

#[test]
fn every_line_that_operators_are_told_of_is_in_the_code() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let code: String = ["worker", "engine", "store"].map(|name| code(&crates.join(name).join("src"))).concat();
    let lines = rows(&read("docs/operate.md"), "Lines in the log");
    assert!(lines.lines().count() > 10);
    for line in lines.lines() {
        let quoted = line.split('`').nth(1).unwrap();
        // What stands for something else is left out.
        for part in quoted.split('…').map(str::trim).filter(|part| !part.is_empty()) {
            assert!(code.contains(part), "no line of the code says {part:?}");
        }
    }
}
