//! Functions, files and types stay small enough to be understood at a glance.
//!
//! A function's length is its lines from `fn` to the closing brace. A table may be longer: a body that is one macro call, array,
//! struct literal or `match`, with rows of at most a few lines.

mod functions;
mod methods;

use std::fmt::Write as _;

use anyhow::Result;

use self::functions::Function;
use super::Finding;
use super::crates::{self, Check, Checked};
use crate::tree::Tree;

/// Of a crate's functions, 95 of 100 have fewer lines than this.
const P95: usize = 30;
/// No function that is not a table has more lines.
const LONGEST: usize = 80;
/// No file that is not a test has more lines.
const FILE: usize = 500;
/// No type has more methods.
const METHODS: usize = 40;

pub(super) fn functions(tree: &Tree) -> Result<Vec<Finding>> {
    enforced(tree, Check::Functions, |checked| long_functions(&functions::of(checked)))
}

pub(super) fn files(tree: &Tree) -> Result<Vec<Finding>> {
    enforced(tree, Check::Files, |checked| {
        let long = file_lengths(tree, checked).into_iter().filter(|(_, lines)| *lines > FILE);
        long.map(|(file, lines)| Finding::at(&file, lines, format!("{lines} lines, {FILE} are allowed"))).collect()
    })
}

pub(super) fn methods(tree: &Tree) -> Result<Vec<Finding>> {
    enforced(tree, Check::Methods, |checked| {
        let large = methods::of(checked).into_iter().filter(|owner| owner.methods > METHODS);
        let text =
            |owner: &methods::Owner| format!("{} has {} methods, {METHODS} are allowed", owner.name, owner.methods);
        large.map(|owner| Finding::at(&owner.file, owner.line, text(&owner))).collect()
    })
}

fn enforced(tree: &Tree, check: Check, find: impl Fn(&Checked) -> Vec<Finding>) -> Result<Vec<Finding>> {
    let all = crates::all(tree)?;
    Ok(all.iter().filter(|checked| checked.enforces(check)).flat_map(find).collect())
}

fn long_functions(functions: &[Function]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let p95 = p95(functions);
    if p95 >= P95 {
        let long = functions.iter().find(|function| function.lines >= p95);
        let text = format!("95 of 100 functions have up to {p95} lines, less than {P95} are allowed");
        findings.extend(long.map(|function| Finding::at(&function.file, function.line, text)));
    }
    let long = functions.iter().filter(|function| function.is_too_long());
    findings.extend(long.map(|function| {
        let text = format!("`{}` has {} lines, {LONGEST} are allowed", function.name, function.lines);
        Finding::at(&function.file, function.line, text)
    }));
    findings
}

impl Function {
    fn is_too_long(&self) -> bool {
        self.lines > LONGEST && !self.is_table
    }
}

/// The length that 95 of 100 functions do not exceed.
fn p95(functions: &[Function]) -> usize {
    let mut lengths: Vec<usize> = functions.iter().map(|function| function.lines).collect();
    lengths.sort_unstable();
    lengths.get((lengths.len() * 95).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0)
}

/// The files of a crate's modules that are no tests, with their lines.
fn file_lengths(tree: &Tree, checked: &Checked) -> Vec<(String, usize)> {
    let own = checked.modules.modules.iter().enumerate().filter(|(index, module)| module.file_module == *index);
    own.filter_map(|(_, module)| Some((module.file.clone(), tree.get(&module.file)?.text.lines().count()))).collect()
}

/// The figures of all crates, with what exceeds a limit.
pub(super) fn report(tree: &Tree) -> Result<String> {
    let mut text = format!(
        "  {:<10} {:>9} {:>4} {:>8} {:>14} {:>13}  {}\n",
        "shape of", "functions", "p95", "longest", "longest file", "most methods", "not enforced"
    );
    for checked in crates::all(tree)? {
        write_figures(&mut text, tree, &checked)?;
    }
    Ok(text)
}

fn write_figures(text: &mut String, tree: &Tree, checked: &Checked) -> Result<()> {
    let (functions, files, owners) = (functions::of(checked), file_lengths(tree, checked), methods::of(checked));
    let longest = functions.iter().filter(|function| !function.is_table).map(|function| function.lines).max();
    let longest_file = files.iter().map(|(_, lines)| *lines).max();
    let most = owners.first().map_or_else(String::new, |owner| format!("{} {}", owner.name, owner.methods));
    let open: Vec<&str> = [(Check::Functions, "functions"), (Check::Files, "files"), (Check::Methods, "methods")]
        .into_iter()
        .filter_map(|(check, name)| (!checked.enforces(check)).then_some(name))
        .collect();
    let (count, p95, longest, file) =
        (functions.len(), p95(&functions), longest.unwrap_or(0), longest_file.unwrap_or(0));
    writeln!(
        text,
        "  {:<10} {count:>9} {p95:>4} {longest:>8} {file:>14} {most:>13}  {}",
        checked.name,
        open.join(", ")
    )?;
    for function in functions.iter().filter(|function| function.is_too_long()) {
        writeln!(text, "      {}:{}: `{}` has {} lines", function.file, function.line, function.name, function.lines)?;
    }
    for (file, lines) in files.iter().filter(|(_, lines)| *lines > FILE) {
        writeln!(text, "      {file}: {lines} lines")?;
    }
    for owner in owners.iter().filter(|owner| owner.methods > METHODS) {
        writeln!(text, "      {}:{}: {} has {} methods", owner.file, owner.line, owner.name, owner.methods)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    #[test]
    fn function_of_more_than_80_lines_is_found_unless_it_is_a_table() {
        let rows = "        1 => 2,\n".repeat(90);
        let table = format!("fn table(n: u8) -> u8 {{\n    match n {{\n{rows}    }}\n}}\n");
        let short = (0..60).map(|n| function(&format!("short_{n}"), 3)).collect::<String>();
        let text = format!("{short}{table}{}impl A {{\n{}}}", function("fits", 80), function("long", 81));
        let tree = Tree::of(&[("crates/a/src/lib.rs", &text)]);
        let found = long_functions(&functions::of(&crates::strict(&tree, "a")));
        assert_eq!(shown(&found), ["crates/a/src/lib.rs:356: `long` has 81 lines, 80 are allowed"]);
    }

    #[test]
    fn many_functions_of_30_lines_are_found() {
        let of = |lines| {
            let text = function("one", lines).repeat(6) + &function("two", 3).repeat(94);
            let tree = Tree::of(&[("crates/a/src/lib.rs", &text)]);
            shown(&long_functions(&functions::of(&crates::strict(&tree, "a"))))
        };
        assert_eq!(of(29), [""; 0]);
        let expected = "crates/a/src/lib.rs:1: 95 of 100 functions have up to 30 lines, less than 30 are allowed";
        assert_eq!(of(30), [expected]);
    }

    #[test]
    fn tests_are_no_functions_and_no_files_of_a_crate() {
        let text = format!("#[cfg(test)]\nmod tests;\n#[test]\n{}", function("long", 90));
        let long = "//\n".repeat(600);
        let tree = Tree::of(&[("crates/a/src/lib.rs", &text), ("crates/a/src/tests.rs", &long)]);
        let checked = crates::strict(&tree, "a");
        assert!(functions::of(&checked).is_empty());
        assert_eq!(file_lengths(&tree, &checked), [("crates/a/src/lib.rs".to_owned(), 93)]);
    }

    #[test]
    fn enforced_limits_break_their_rules() {
        let long = "//\n".repeat(501);
        let large =
            format!("struct T; impl T {{ {} }}", (0..41).map(|n| format!("fn f{n}() {{}} ")).collect::<String>());
        let tree = Tree::of(&[
            ("crates/sys/src/lib.rs", "mod a; mod b;"),
            ("crates/sys/src/a.rs", &long),
            ("crates/sys/src/b.rs", &large),
            ("crates/core/src/lib.rs", &large),
        ]);
        assert_eq!(shown(&files(&tree).unwrap()), ["crates/sys/src/a.rs:501: 501 lines, 500 are allowed"]);
        assert_eq!(shown(&super::methods(&tree).unwrap()), ["crates/sys/src/b.rs:1: T has 41 methods, 40 are allowed"]);
        let tree = Tree::of(&[("crates/sys/src/lib.rs", &function("long", 81))]);
        assert_eq!(super::functions(&tree).unwrap().len(), 2);
    }

    #[test]
    fn methods_of_all_impl_blocks_of_one_type_are_counted_together() {
        let files = [
            ("crates/a/src/lib.rs", "mod b; mod c; mod d; pub use b::Big;"),
            (
                "crates/a/src/b.rs",
                "pub struct Big;\nimpl Big { fn a() {} fn b() {} }\nimpl Clone for Big { fn clone() {} }",
            ),
            ("crates/a/src/c.rs", "use crate::Big; impl<T> Big { fn c() {} #[cfg(test)] fn d() {} }"),
            ("crates/a/src/d.rs", "struct Big; impl Big { fn a() {} }"),
        ];
        let owners = methods::of(&crates::strict(&Tree::of(&files), "a"));
        let shown: Vec<String> =
            owners.iter().map(|o| format!("{}:{} {} {}", o.file, o.line, o.name, o.methods)).collect();
        assert_eq!(shown, ["crates/a/src/b.rs:2 Big 3", "crates/a/src/d.rs:1 Big 1"]);
    }
}
