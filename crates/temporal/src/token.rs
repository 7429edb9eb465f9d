//! Completion tokens: the server's own task token, so that a token of an earlier attempt is refused by the server.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dacapo_client::Error;

const PREFIX: &str = "temporal:";

pub(crate) fn token_to_text(token: &[u8]) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(token))
}

/// # Errors
/// The text is no token of this backend.
pub(crate) fn token_from_text(text: &str) -> Result<Vec<u8>, Error> {
    let decoded = text.strip_prefix(PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    decoded.filter(|token| !token.is_empty()).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Error::InvalidToken(format!(
            "{shown:?} is no completion token of a Temporal cluster: pass on the text that `ctx.completion_token()` gave, unchanged"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_comes_back_from_its_text_and_other_text_is_refused() {
        let token = [0, 255, 7];
        assert_eq!(token_from_text(&token_to_text(&token)), Ok(token.to_vec()));
        for text in ["", "temporal:", "temporal:*", "dacapo1.x"] {
            assert!(matches!(token_from_text(text), Err(Error::InvalidToken(_))), "{text}");
        }
    }
}
