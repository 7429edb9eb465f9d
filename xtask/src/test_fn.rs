//! The tests of the tree: their names, what their doc comments say, and whether they assert anything.

use std::ops::Range;

use crate::code::{Code, TokenKind};
use crate::tree::Tree;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestFn {
    pub(crate) name: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) doc: String,
    pub(crate) asserts: bool,
}

/// Every test of the tree, in the order of the files.
pub(crate) fn all(tree: &Tree) -> Vec<TestFn> {
    tree.rust().flat_map(|(source, code)| in_code(&source.path, code)).collect()
}

/// The tests of one file: functions under `#[test]` or an attribute that ends in `::test`, wherever they stand.
fn in_code(file: &str, code: &Code) -> Vec<TestFn> {
    let mut tests = Vec::new();
    let mut attributes: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < code.tokens.len() {
        match code.text(at) {
            "#" if code.text(at + 1) == "[" => {
                let end = code.closing(at + 1);
                attributes.push(at + 2..end);
                at = end;
            }
            "fn" if code.tokens.get(at + 1).is_some_and(|token| token.is_ident()) => {
                if attributes.iter().any(|attribute| is_test(code, attribute)) {
                    tests.push(TestFn {
                        name: code.text(at + 1).to_owned(),
                        file: file.to_owned(),
                        line: code.tokens[at].line,
                        doc: attributes.iter().filter_map(|attribute| doc(code, attribute)).collect(),
                        asserts: code.body(at).is_some_and(|body| asserts(code, body)),
                    });
                }
                attributes.clear();
            }
            // What may stand between an attribute and its `fn`.
            "pub" | "(" | "crate" | ")" | "async" | "const" => {}
            _ => attributes.clear(),
        }
        at += 1;
    }
    tests
}

/// `test`, `tokio::test`, `tokio::test(start_paused = true)`: a path that ends in `test`.
fn is_test(code: &Code, attribute: &Range<usize>) -> bool {
    let path = attribute.clone().take_while(|&at| code.tokens[at].is_ident() || code.text(at) == ":");
    path.last().is_some_and(|at| code.text(at) == "test")
}

fn doc(code: &Code, attribute: &Range<usize>) -> Option<String> {
    let is_doc = code.text(attribute.start) == "doc" && code.text(attribute.start + 1) == "=";
    is_doc.then(|| format!("{}\n", code.text(attribute.start + 2).trim_matches(['r', '#', '"'])))
}

/// Whether a body calls something that can fail the test on purpose. A plain `.expect("…")` unwraps and does not count.
fn asserts(code: &Code, body: Range<usize>) -> bool {
    body.into_iter().any(|at| {
        let token = &code.tokens[at];
        let called = matches!(code.text(at + 1), "!" | "(");
        let unwraps = token.text == "expect" && at > 0 && code.text(at - 1) == ".";
        token.kind == TokenKind::Ident && called && !unwraps && is_assertion(&token.text)
    })
}

fn is_assertion(name: &str) -> bool {
    let starts = ["assert", "debug_assert", "prop_assert", "check", "expect", "conform"];
    name == "unwrap_err" || starts.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests_of(text: &str) -> Vec<TestFn> {
        in_code("a.rs", &Code::lex(text).unwrap())
    }

    #[test]
    fn a_test_has_its_name_its_doc_and_its_line() {
        let found =
            tests_of("/// S0-30\n/// and more\n#[test]\nfn branches_go_on() { assert_eq!(1, 1); }\nfn other() {}");
        let expected = TestFn {
            name: "branches_go_on".into(),
            file: "a.rs".into(),
            line: 4,
            doc: " S0-30\n and more\n".into(),
            asserts: true,
        };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn tests_in_modules_in_proptest_and_under_tokio_are_found() {
        let found = tests_of(
            "#[cfg(test)] mod tests { #[tokio::test(start_paused = true)] async fn one() {} }
             proptest! {
                 #![proptest_config(ProptestConfig::with_cases(9))]
                 /// S1-54
                 #[test]
                 fn two(set in prop::collection::vec(any::<u8>(), 0..9)) { prop_assert!(set.len() < 9); }
                 #[test]
                 fn three(x in 0..3) { x; }
             }
             #[cfg(test)] fn four() {}",
        );
        let names: Vec<_> = found.iter().map(|test| (test.name.as_str(), test.doc.trim(), test.asserts)).collect();
        assert_eq!(names, [("one", "", false), ("two", "S1-54", true), ("three", "", false)]);
    }

    #[test]
    fn only_deliberate_failures_count_as_assertions() {
        let asserts = |body: &str| tests_of(&format!("#[test] fn a() {{ {body} }}"))[0].asserts;
        for body in [
            "assert!(x)",
            "check(w, s, expect![[\"\"]])",
            "m! { prop_assert_eq!(a, b) }",
            "f().unwrap_err();",
            "kit.check_all()",
        ] {
            assert!(asserts(body), "{body}");
        }
        for body in ["x.unwrap()", "x.expect(\"there\")", "let check = 1;", "\"assert!(x)\";", ""] {
            assert!(!asserts(body), "{body}");
        }
    }

    #[test]
    fn an_attribute_of_one_item_does_not_leak_to_the_next() {
        assert_eq!(tests_of("#[test] struct A; fn b() {}"), []);
    }
}
