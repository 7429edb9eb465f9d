//! Completion tokens: with one, an external program ends an attempt, maybe long after its code has returned.

use std::fmt;
use std::str::FromStr;

use dacapo_core::Name;
use thiserror::Error;

/// The attempt of an activity that a token names. The token's text is opaque, consists of letters and digits only, and
/// can be part of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionToken {
    /// The workflow id of the run that asked for the activity.
    pub workflow_id: Name,
    /// The run id.
    pub run_id: Name,
    /// The activity's id within the run.
    pub activity_id: Name,
    /// The attempt's number, from 1.
    pub attempt: u32,
}

/// A text that is no completion token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The text was never a token.
    #[error(
        "this is no completion token: it does not begin with {PREFIX:?}; pass on what `ctx.completion_token()` gave"
    )]
    Foreign,
    /// The text was a token before it was shortened or changed.
    #[error("this completion token is damaged: pass on what `ctx.completion_token()` gave, whole and unchanged")]
    Damaged,
}

/// The prefix of a token. Its last digit is the number of the format.
const PREFIX: &str = "dcpt1";

impl fmt::Display for CompletionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.attempt.to_be_bytes().to_vec();
        for name in [&self.workflow_id, &self.run_id, &self.activity_id] {
            bytes.extend(u32::try_from(name.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend(name.as_bytes());
        }
        // Detects a token that was cut or mistyped. It does not keep a program from making one.
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        f.write_str(PREFIX)?;
        bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for CompletionToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let digits = text.strip_prefix(PREFIX).ok_or(TokenError::Foreign)?;
        read(digits).ok_or(TokenError::Damaged)
    }
}

fn read(digits: &str) -> Option<CompletionToken> {
    let nibbles: Vec<u32> = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, odd) = nibbles.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| u8::try_from(high * 16 + low).ok()).collect::<Option<_>>()?;
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    if !odd.is_empty() || crc32fast::hash(content) != u32::from_be_bytes(*sum) {
        return None;
    }
    let (attempt, mut rest) = content.split_first_chunk::<4>()?;
    let mut names = [const { Name::from_static("") }; 3];
    for name in &mut names {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (text, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        *name = std::str::from_utf8(text).ok()?.to_owned().into();
        rest = after;
    }
    let [workflow_id, run_id, activity_id] = names;
    let attempt = u32::from_be_bytes(*attempt);
    rest.is_empty().then_some(CompletionToken { workflow_id, run_id, activity_id, attempt })
}

#[cfg(test)]
mod tests {
    use dacapo_testkit::assert_golden;

    use super::*;

    #[test]
    fn completion_token_is_what_its_number_says() {
        let token = CompletionToken {
            workflow_id: "order/ä 42".into(),
            run_id: "01a1ef60-e76e-7569-bb93-4ca70a0d0270".into(),
            activity_id: "fd49ce85-5d72-4c30-bb24-57aa03edea44".into(),
            attempt: 7,
        };
        let number = PREFIX.trim_start_matches("dcpt").parse().unwrap();
        let kept = assert_golden(env!("CARGO_MANIFEST_DIR"), "completion-token", number, "txt", &format!("{token}\n"));
        assert_eq!(kept.trim_end().parse(), Ok(token));
    }

    #[test]
    fn a_token_comes_back_from_its_text_and_no_other_text_is_one() {
        let token = CompletionToken {
            workflow_id: "order/ä 42".into(),
            run_id: "run-1".into(),
            activity_id: "".into(),
            attempt: 7,
        };
        let text = token.to_string();
        assert!(text.chars().all(|letter| letter.is_ascii_alphanumeric()), "{text}");
        assert_eq!(text.parse(), Ok(token));
        for foreign in ["", "hello", "DCPT1"] {
            assert_eq!(foreign.parse::<CompletionToken>(), Err(TokenError::Foreign), "{foreign}");
        }
        for end in PREFIX.len()..text.len() {
            assert_eq!(text[..end].parse::<CompletionToken>(), Err(TokenError::Damaged), "{end}");
            let mut changed = text.clone();
            let digit = if &text[end..=end] == "0" { "1" } else { "0" };
            changed.replace_range(end..=end, digit);
            assert_eq!(changed.parse::<CompletionToken>(), Err(TokenError::Damaged), "{changed}");
            changed.replace_range(end..=end, "ö");
            assert_eq!(changed.parse::<CompletionToken>(), Err(TokenError::Damaged), "{changed}");
        }
    }
}
