//! Requirement ids: `S0-30`, `T-7`, and how a comment lists them.

use std::fmt;

/// The series of the table and how many rows each has, so that a row lost at the end is missed too.
pub(super) const SERIES: &[(&str, u32)] = &[("S0", 77), ("S1", 78), ("S2", 29), ("S3", 56), ("S4", 55), ("T", 28)];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Id {
    pub(super) series: &'static str,
    pub(super) number: u32,
}

impl Id {
    /// The id at the start of a text, and what follows it.
    fn lead(text: &str) -> Option<(Self, &str)> {
        let (series, rest) = SERIES.iter().find_map(|(series, _)| Some((*series, text.strip_prefix(series)?)))?;
        let (number, rest) = lead_number(rest.strip_prefix('-')?)?;
        Some((Self { series, number }, rest))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::lead(text).filter(|(_, rest)| rest.is_empty()).map(|(id, _)| id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.series, self.number)
    }
}

/// Every id that a comment names: alone, in a list, as `S0-52 to S0-55` or as `S0-52..55`.
pub(super) fn ids_in(text: &str) -> Vec<Id> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let at_word_start = !before.is_alphanumeric() && before != '-' && before != '_';
        if let Some((from, after)) = Id::lead(rest).filter(|_| at_word_start) {
            let (to, after) = range_end(from, after).unwrap_or((from.number, after));
            found.extend((from.number..=to).map(|number| Id { series: from.series, number }));
            (rest, before) = (after, '0');
        } else {
            (rest, before) = (&rest[first.len_utf8()..], first);
        }
    }
    found
}

/// The number up to which a range goes, where what follows `from` is the second half of a range.
fn range_end(from: Id, after: &str) -> Option<(u32, &str)> {
    let tail = ["..=", "..", " to "].iter().find_map(|link| after.strip_prefix(link))?;
    match Id::lead(tail) {
        Some((to, rest)) => (to.series == from.series).then_some((to.number, rest)),
        // ` to 5` is prose; `..5` is a range.
        None if after.starts_with("..") => lead_number(tail),
        None => None,
    }
}

fn lead_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        ids_in(text).iter().map(Id::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ids_stand_alone_in_lists_and_in_ranges() {
        assert_eq!(shown(" S0-30"), "S0-30");
        assert_eq!(shown("S0-1, S1-78; T-7."), "S0-1 S1-78 T-7");
        assert_eq!(shown("(S0-52 to S0-55)"), "S0-52 S0-53 S0-54 S0-55");
        assert_eq!(shown("S0-52..55 and S2-3..S2-4"), "S0-52 S0-53 S0-54 S0-55 S2-3 S2-4");
        assert_eq!(shown("S4-1..=3"), "S4-1 S4-2 S4-3");
    }

    #[test]
    fn text_that_resembles_a_requirement_id_is_left_alone() {
        assert_eq!(shown("UTF-8, C-48, AT-3, MS0-3, S9-1, S0-x, T-"), "");
        assert_eq!(shown("S0-3 to S1-5"), "S0-3 S1-5");
        assert_eq!(shown("S0-3 to 5 branches"), "S0-3");
    }
}
