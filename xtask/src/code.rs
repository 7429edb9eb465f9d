//! Rust source as a flat list of tokens.
//!
//! The rules look at tokens and not at lines, so that a word in a string or a comment never counts as code, and code
//! inside a macro (`proptest!`) is seen like any other.

use std::ops::Range;
use std::str::FromStr;

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
    Ident,
    Literal,
    /// A punctuation character or a bracket.
    Mark,
}

#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    pub(crate) fn is_ident(&self) -> bool {
        self.kind == TokenKind::Ident
    }
}

#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) tokens: Vec<Token>,
}

impl Code {
    pub(crate) fn lex(text: &str) -> Result<Self, LexError> {
        Ok(Self::of(TokenStream::from_str(text)?))
    }

    pub(crate) fn of(stream: TokenStream) -> Self {
        let mut code = Self::default();
        code.push_all(stream);
        code
    }

    fn push_all(&mut self, stream: TokenStream) {
        for tree in stream {
            let line = tree.span().start().line;
            match tree {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.push(TokenKind::Mark, open, line);
                    self.push_all(group.stream());
                    self.push(TokenKind::Mark, close, group.span_close().start().line);
                }
                TokenTree::Ident(ident) => self.push(TokenKind::Ident, &ident.to_string(), line),
                TokenTree::Punct(punct) => self.push(TokenKind::Mark, &punct.as_char().to_string(), line),
                TokenTree::Literal(literal) => self.push(TokenKind::Literal, &literal.to_string(), line),
            }
        }
    }

    fn push(&mut self, kind: TokenKind, text: &str, line: usize) {
        self.tokens.push(Token { kind, text: text.to_owned(), line });
    }

    /// The text of a token, empty beyond the end.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    /// Where a pattern begins. It is written as tokens with spaces between them: `thread : : sleep`.
    pub(crate) fn find<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
        let words: Vec<&str> = pattern.split(' ').collect();
        (0..self.tokens.len()).filter(move |&at| (at..).zip(&words).all(|(at, word)| self.text(at) == *word))
    }

    /// The lines on which a pattern begins.
    pub(crate) fn lines_with<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.find(pattern).map(|at| self.tokens[at].line)
    }

    /// The index of the bracket that closes the one at `open`.
    pub(crate) fn closing(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for at in open..self.tokens.len() {
            match self.text(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        self.tokens.len()
    }

    /// The body of the item whose head begins at `head`: the tokens from its first free `{` to the matching `}`.
    pub(crate) fn body(&self, head: usize) -> Option<Range<usize>> {
        let mut at = head;
        while at < self.tokens.len() {
            match self.text(at) {
                "{" => return Some(at..self.closing(at) + 1),
                ";" => return None,
                "(" | "[" => at = self.closing(at),
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// The lines of the items that stand under `#[cfg(test)]`.
    pub(crate) fn test_lines(&self) -> Vec<Range<usize>> {
        let first_line = |at: usize| self.tokens[at].line;
        self.find("# [ cfg ( test ) ]")
            .map(|at| {
                let last = self.body(at + 7).map_or(at, |body| body.end - 1);
                first_line(at)..self.tokens.get(last).map_or(usize::MAX, |token| token.line + 1)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, pattern: &str) -> Vec<usize> {
        Code::lex(text).unwrap().lines_with(pattern).collect()
    }

    #[test]
    fn words_in_strings_and_comments_are_not_code() {
        let text = "// thread::sleep\nlet a = \"thread::sleep\";\nstd::thread::sleep(d);\nm! { thread::sleep(d) }";
        assert_eq!(lines(text, "thread : : sleep"), [3, 4]);
    }

    #[test]
    fn test_lines_end_with_their_module() {
        let code = Code::lex("#[cfg(test)]\n#[allow(x)]\nmod tests {\n fn a() {}\n}\nfn b() {}\n").unwrap();
        assert_eq!(code.test_lines().first(), Some(&(1..6)));
        let declared = Code::lex("#[cfg(test)]\nmod tests;\nfn b() {}\n").unwrap();
        assert_eq!(declared.test_lines().first(), Some(&(1..2)));
    }

    #[test]
    fn a_body_is_found_behind_arguments_that_hold_braces() {
        let code = Code::lex("fn f(x in any().prop_map(|x| { x })) -> [u8; 2] { x }").unwrap();
        let body = code.body(0).unwrap();
        assert_eq!(code.tokens[body].iter().map(|token| token.text.as_str()).collect::<String>(), "{x}");
    }
}
