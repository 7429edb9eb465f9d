//! The modules of a crate depend on each other in one direction only.
//!
//! An edge is a path to an item: in a `use` declaration or in code, also inside a macro call. Re-exports are resolved to the module
//! that defines the item, a glob import is an edge to its module, and a method call is no edge. Test code and paths between a
//! module and its ancestors do not count.

mod graph;
mod uses;

use std::fmt::Write as _;

use anyhow::Result;

use self::graph::{Cycle, Graph};
use super::Finding;
use super::crates::{self, Check, Checked};
use crate::tree::Tree;

pub(super) fn find(tree: &Tree) -> Result<Vec<Finding>> {
    let enforced = crates::all(tree)?.into_iter().filter(|checked| checked.enforces(Check::Cycles));
    Ok(enforced.flat_map(|checked| in_crate(&checked)).collect())
}

fn in_crate(checked: &Checked) -> Vec<Finding> {
    let graph = Graph::of(&checked.modules);
    let finding = |cycle: &Cycle| {
        let (first, _) = &cycle.shortest[0];
        Finding::at(&first.file, first.line, format!("{} modules in a cycle: {}", cycle.modules.len(), cycle.shown()))
    };
    graph.cycles().iter().map(finding).collect()
}

/// The figures of all crates, and the cycles of those that have any.
pub(super) fn report(tree: &Tree) -> Result<String> {
    let mut text = format!("  {:<10} {:>8} {:>6} {:>7}\n", "modules of", "modules", "edges", "cycles");
    for checked in crates::all(tree)? {
        let graph = Graph::of(&checked.modules);
        let (cycles, is_enforced) = (graph.cycles(), checked.enforces(Check::Cycles));
        let note = if is_enforced { "" } else { "   not enforced" };
        let (modules, edges) = (graph.modules(), graph.edges());
        writeln!(text, "  {:<10} {modules:>8} {edges:>6} {:>7}{note}", checked.name, cycles.len())?;
        for cycle in &cycles {
            writeln!(text, "      {} modules in a cycle: {}", cycle.modules.len(), cycle.modules.join(", "))?;
            writeln!(text, "        the shortest: {}", cycle.shown())?;
            for (edge, to) in &cycle.shortest {
                writeln!(text, "          {}:{} uses {to}", edge.file, edge.line)?;
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::shown;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        shown(&in_crate(&crates::strict(&Tree::of(files), "a")))
    }

    #[test]
    fn cycle_through_reexport_inline_path_and_macro_call_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "mod b; mod c; mod d; pub use b::B;"),
            ("crates/a/src/b.rs", "use crate::c::C;\npub struct B;"),
            ("crates/a/src/c.rs", "pub struct C;\nfn f() { crate::d::g() }"),
            ("crates/a/src/d.rs", "pub fn g() {\n  vec![crate::B];\n}"),
        ];
        let expected = ["crates/a/src/b.rs:1: 3 modules in a cycle: b → c → d → b"];
        assert_eq!(findings(&files), expected);
    }

    #[test]
    fn cycle_through_a_parent_that_reexports_a_sibling_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "mod p;"),
            ("crates/a/src/p/mod.rs", "mod x; mod y; use x::X; use y::Y;"),
            ("crates/a/src/p/x.rs", "use super::Y;\npub struct X;"),
            ("crates/a/src/p/y.rs", "use super::*;\npub struct Y(X);"),
        ];
        let expected = ["crates/a/src/p/x.rs:1: 2 modules in a cycle: p::x → p::y → p::x"];
        assert_eq!(findings(&files), expected);
    }

    #[test]
    fn tests_ancestors_methods_and_other_crates_are_no_edges() {
        let files = [
            ("crates/a/src/lib.rs", "mod b; mod c; use b::B;"),
            ("crates/a/src/b.rs", "use crate::c::C; use crate::top; pub struct B; fn f(c: C) { c.b() }"),
            (
                "crates/a/src/c.rs",
                "use std::fmt; pub struct C;\n#[cfg(test)] mod tests { use crate::b::B; }\n#[test] fn t() { crate::b::f() }",
            ),
        ];
        assert_eq!(findings(&files), [""; 0]);
    }

    #[test]
    fn glob_import_is_an_edge_to_its_module() {
        let files = [
            ("crates/a/src/lib.rs", "mod b; mod c;"),
            ("crates/a/src/b.rs", "use crate::c::*; pub struct B;"),
            ("crates/a/src/c.rs", "use crate::b::B;"),
        ];
        assert_eq!(findings(&files), ["crates/a/src/b.rs:1: 2 modules in a cycle: b → c → b"]);
    }

    #[test]
    fn cycle_breaks_the_rule_where_it_is_enforced() {
        let files = |name: &str| {
            let path = |file: &str| format!("crates/{name}/src/{file}.rs");
            let texts = [
                ("lib", "mod b; mod c;"),
                ("b", "use crate::c::C; pub struct B;"),
                ("c", "use crate::b::B; pub struct C;"),
            ];
            let owned: Vec<(String, &str)> = texts.iter().map(|(file, text)| (path(file), *text)).collect();
            let borrowed: Vec<(&str, &str)> = owned.iter().map(|(path, text)| (path.as_str(), *text)).collect();
            find(&Tree::of(&borrowed)).unwrap().len()
        };
        assert_eq!((files("sys"), files("core")), (1, 0));
    }

    #[test]
    fn report_shows_the_loop_with_the_line_of_each_use() {
        let files = [
            ("crates/worker/src/lib.rs", "mod b; mod c;"),
            ("crates/worker/src/b.rs", "\nuse crate::c::C; pub struct B;"),
            ("crates/worker/src/c.rs", "use crate::b::B; pub struct C;"),
        ];
        let text = report(&Tree::of(&files)).unwrap();
        assert!(text.contains("worker            3      2       1"), "{text}");
        assert!(
            text.contains("crates/worker/src/b.rs:2 uses c\n          crates/worker/src/c.rs:1 uses b\n"),
            "{text}"
        );
    }
}
