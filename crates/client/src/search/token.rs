//! The words, values and signs of a search.

use std::fmt;

use super::SearchError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or a keyword of the language.
    Word(String),
    /// A name in backticks, which is never a keyword of the language.
    Name(String),
    Text(String),
    Int(i64),
    Float(f64),
    /// A comparison, a bracket or a comma.
    Sign(&'static str),
    End,
}

/// A token and the byte of the text where it begins.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) start: usize,
}

/// Longer signs come first.
const SIGNS: [&str; 10] = ["<>", "!=", "<=", ">=", "=", "<", ">", "(", ")", ","];

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Name(name) => write!(f, "the name `{name}`"),
            Self::Text(text) => write!(f, "the text '{text}'"),
            Self::Int(number) => write!(f, "the number {number}"),
            Self::Float(number) => write!(f, "the number {number}"),
            Self::Sign(sign) => write!(f, "`{sign}`"),
            Self::End => f.write_str("the end of the text"),
        }
    }
}

/// Splits a text into its tokens; the last one is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, SearchError> {
    if let Some(place) = text.find('\0') {
        return Err(SearchError::at(
            text,
            place,
            "no database can compare a text with the character NUL: leave it out",
        ));
    }
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        }
        let (token, length) = match first {
            '\'' | '"' => quoted(text, start).map(|(value, length)| (Token::Text(value), length))?,
            '`' => quoted(text, start).map(|(name, length)| (Token::Name(name), length))?,
            '0'..='9' | '-' | '+' | '.' => number(text, start)?,
            _ if is_of_word(first) => {
                let word = prefix(rest, is_of_word);
                (Token::Word(word.to_owned()), word.len())
            }
            _ if rest.starts_with("==") => return Err(SearchError::at(text, start, "`==` is not known: write `=`")),
            _ => match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
                Some("<>") => return Err(SearchError::at(text, start, "`<>` is not known: write `!=`")),
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => {
                    let problem =
                        format!("{first:?} means nothing here: put text in single quotes, and odd names in backticks");
                    return Err(SearchError::at(text, start, problem));
                }
            },
        };
        found.push(Placed { token, start });
        start += length;
    }
    found.push(Placed { token: Token::End, start: text.len() });
    Ok(found)
}

/// Attributes may have dots and dashes in their names, as in `order.total`.
fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '.' | '-')
}

fn prefix(text: &str, holds: impl Fn(char) -> bool) -> &str {
    &text[..text.find(|char| !holds(char)).unwrap_or(text.len())]
}

/// Reads a text or a name in quotes. A quote in it is written twice or after a backslash, and a backslash after another.
fn quoted(text: &str, start: usize) -> Result<(String, usize), SearchError> {
    let mut chars = text[start..].char_indices().peekable();
    let quote = chars.next().map_or('\'', |(_, quote)| quote);
    let mut value = String::new();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some((_, escaped)) if escaped == quote || escaped == '\\' => value.push(escaped),
                Some((_, other)) => value.extend(['\\', other]),
                None => break,
            },
            _ if char == quote => match chars.next_if(|(_, next)| *next == quote) {
                Some(_) => value.push(quote),
                None => return Ok((value, at + quote.len_utf8())),
            },
            _ => value.push(char),
        }
    }
    Err(SearchError::at(text, start, format!("this {quote} has no other one: end the text with it")))
}

fn number(text: &str, start: usize) -> Result<(Token, usize), SearchError> {
    let is_part = |char: char| is_of_word(char) || char == '+';
    let digits = prefix(&text[start..], is_part);
    let token = match (digits.parse::<i64>(), digits.parse::<f64>()) {
        (Ok(number), _) => Token::Int(number),
        (_, Ok(number)) if number.is_finite() => Token::Float(number),
        _ => {
            let problem = format!("`{digits}` is no number: put text and moments in single quotes, '{digits}'");
            return Err(SearchError::at(text, start, problem));
        }
    };
    Ok((token, digits.len()))
}
