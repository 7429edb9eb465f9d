//! Tests never wait for real time: it makes them slow on a fast machine and wrong on a slow one.
//!
//! Where real time is what a test is about, a comment `// sleep: <reason>` on the line of the call or right above it says so.

use super::Finding;
use crate::code::Code;
use crate::tree::{Source, Tree};

const REASON: &str = "// sleep: ";

pub(super) fn find(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (source, code) in tree.rust() {
        let lines = code.find("sleep (").filter(|&at| is_of_a_clock(code, at)).map(|at| code.tokens[at].line);
        let unexplained = lines.filter(|&line| source.is_test(line) && !has_reason(source, line));
        findings.extend(
            unexplained.map(|line| Finding::new(source, line, "a real sleep in a test, without `// sleep: <reason>`")),
        );
    }
    findings
}

/// `thread::sleep`, `time::sleep` or an imported `sleep`, and not a method: `ctx.sleep` is a timer of the workflow.
fn is_of_a_clock(code: &Code, at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| code.text(before));
    !matches!(before, "." | "fn")
        && (before != ":" || matches!(code.text(at.saturating_sub(3)), "thread" | "time" | "tokio"))
}

/// Whether the line or the comment right above it begins with the reason.
fn has_reason(source: &Source, line: usize) -> bool {
    let lines: Vec<&str> = source.text.lines().take(line).collect();
    let (own, above) = lines.split_last().map_or(("", &[][..]), |(own, above)| (*own, above));
    let comment = above.iter().rev().take_while(|text| text.trim_start().starts_with("//"));
    own.contains(REASON) || comment.into_iter().any(|text| text.trim_start().starts_with(REASON))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    const FOUND: &str = "a real sleep in a test, without `// sleep: <reason>`";

    #[test]
    fn sleep_is_found_in_tests_only() {
        let sleep = "fn a() { std::thread::sleep(d); }\n";
        let inside = format!("{sleep}#[cfg(test)]\nmod tests {{\n{sleep}}}\n");
        let awaited =
            "async fn a() { tokio::time::sleep(d).await;\n sleep(d).await;\n ctx.sleep(d).await;\n durust::sleep(d); }";
        let tree = Tree::of(&[("a/src/lib.rs", &inside), ("a/tests/b.rs", sleep), ("a/tests/c.rs", awaited)]);
        let expected =
            ["a/src/lib.rs:4", "a/tests/b.rs:1", "a/tests/c.rs:1", "a/tests/c.rs:2"].map(|at| format!("{at}: {FOUND}"));
        assert_eq!(shown(&find(&tree)), expected);
    }

    #[test]
    fn sleep_with_a_reason_is_allowed() {
        let text = "fn a() {\n    // sleep: the process lives for a while,\n    // and then it is killed.\n    thread::sleep(d);\n    sleep(d); // sleep: as well\n    // asleep\n    sleep(d);\n}\n";
        assert_eq!(shown(&find(&Tree::of(&[("a/tests/b.rs", text)]))), [format!("a/tests/b.rs:7: {FOUND}")]);
    }
}
