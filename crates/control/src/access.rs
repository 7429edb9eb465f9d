//! Who may call what.

use std::fmt;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use dacapo_client::ClientCall;
use subtle::ConstantTimeEq;

/// The right of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look at runs.
    Read,
    /// Look at runs and change them.
    Operate,
}

impl Role {
    /// Returns the role that a call needs.
    pub const fn of(call: &ClientCall) -> Self {
        use ClientCall as C;
        match call {
            C::Query(..)
            | C::UpdateResult(..)
            | C::RunResult(_)
            | C::ResultOrStuck(_)
            | C::Describe(_)
            | C::Published(_)
            | C::List(..)
            | C::Count(_)
            | C::Counts(..)
            | C::History(..)
            | C::RawHistory(_)
            | C::Inspect(_)
            | C::StuckRuns
            | C::Nodes
            | C::Verify => Self::Read,
            // A call of a later version changes something until it is listed above.
            _ => Self::Operate,
        }
    }
}

/// The word of the role.
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Operate => "operate",
        })
    }
}

/// A secret that callers send as `Authorization: Bearer …`, and the role that it gives.
#[derive(Clone)]
pub struct Token {
    secret: Arc<str>,
    role: Role,
}

/// The fewest characters of a token: shorter ones can be guessed.
const SHORTEST: usize = 16;

impl Token {
    /// Makes a token of this secret.
    ///
    /// # Errors
    /// The secret is shorter than 16 characters, or has characters that no header can have.
    pub fn new(role: Role, secret: impl Into<String>) -> Result<Self, String> {
        let secret = secret.into();
        if secret.len() < SHORTEST {
            return Err(format!(
                "the token of role {role} has {} characters, at least {SHORTEST} are needed: take 32 random ones",
                secret.len()
            ));
        }
        if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the token of role {role} has a space or a character that is not ASCII: take letters and digits"
            ));
        }
        Ok(Self { secret: secret.into(), role })
    }

    fn is(&self, sent: &str) -> bool {
        self.secret.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

/// The secret is left out.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("role", &self.role).finish_non_exhaustive()
    }
}

/// Decides by a request who calls: the caller's name, for the audit, and role. None: a stranger.
pub type Authoriser = Arc<dyn Fn(&Parts) -> Option<(String, Role)> + Send + Sync>;

/// How the role of a caller is found.
#[derive(Clone)]
pub enum Access {
    /// All who can connect may do everything: for a socket whose other end was checked.
    Connected,
    /// By the token that the request brings.
    Tokens(Vec<Token>),
    /// By the program's own rule.
    Own(Authoriser),
}

impl Access {
    /// Returns who calls, and with which role.
    pub(crate) fn caller(&self, request: &Parts) -> Option<(String, Role)> {
        match self {
            Self::Connected => Some(("socket".to_owned(), Role::Operate)),
            Self::Tokens(tokens) => {
                let sent = bearer(&request.headers)?;
                // All are compared, so that the time says nothing about which one was nearly right.
                let role = tokens.iter().filter(|token| token.is(sent)).map(|token| token.role).max()?;
                Some((format!("token of role {role}"), role))
            }
            Self::Own(authoriser) => authoriser(request),
        }
    }
}

impl Access {
    /// Returns what to tell a caller who is not known.
    pub(crate) fn refusal(&self, request: &Parts) -> &'static str {
        match self {
            Self::Tokens(_) if bearer(&request.headers).is_some() => {
                "unknown token: it is none of those that this server was given; check that it is whole"
            }
            _ => "this needs a token: send it as `Authorization: Bearer …`",
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn caller(access: &Access, authorization: Option<&str>) -> Option<Role> {
        let mut request = Request::builder().uri("/");
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        access.caller(&request.body(()).unwrap().into_parts().0).map(|(_, role)| role)
    }

    #[test]
    fn role_is_that_of_the_token_that_is_sent() {
        let read = Token::new(Role::Read, "read-0123456789abcdef").unwrap();
        let operate = Token::new(Role::Operate, "operate-0123456789abcdef").unwrap();
        let access = Access::Tokens(vec![read, operate]);
        assert_eq!(caller(&access, Some("Bearer read-0123456789abcdef")), Some(Role::Read));
        assert_eq!(caller(&access, Some("bearer operate-0123456789abcdef")), Some(Role::Operate));
        for wrong in ["Bearer read-0123456789abcde", "Bearer ", "Basic read-0123456789abcdef", "read-0123456789abcdef"]
        {
            assert_eq!(caller(&access, Some(wrong)), None, "{wrong}");
        }
        assert_eq!(caller(&access, None), None);
        assert_eq!(caller(&Access::Tokens(Vec::new()), Some("Bearer x")), None);
    }

    #[test]
    fn token_that_could_be_guessed_or_not_be_sent_is_refused() {
        assert!(Token::new(Role::Read, "short").unwrap_err().contains("at least 16"));
        assert!(Token::new(Role::Read, "with a space in the middle").unwrap_err().contains("a space"));
        let token = Token::new(Role::Read, "read-0123456789abcdef").unwrap();
        assert_eq!(format!("{token:?}"), "Token { role: Read, .. }");
    }
}
