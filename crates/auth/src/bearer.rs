//! The token in an `authorization` header or metadata value.

use crate::{AuthError, TokenError};

/// Longest token. JWTs of a realm with many roles take some kilobytes.
pub(crate) const MAX_BYTES: usize = 16 * 1024;

const SCHEME: &[u8] = b"bearer";

/// Returns the bearer token in `authorization`.
pub(crate) fn token(authorization: Option<&[u8]>) -> Result<&[u8], AuthError> {
    let value = authorization.ok_or(AuthError::MissingToken)?.trim_ascii();
    let (scheme, rest) = value.split_at_checked(SCHEME.len()).ok_or(AuthError::MissingToken)?;
    if !scheme.eq_ignore_ascii_case(SCHEME) || !rest.first().is_some_and(u8::is_ascii_whitespace) {
        return Err(AuthError::MissingToken);
    }
    match rest.trim_ascii_start() {
        token if token.len() > MAX_BYTES => Err(TokenError::TooLong.into()),
        token => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_is_case_insensitive() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc ", " BeArEr\tabc"] {
            assert_eq!(token(Some(value.as_bytes())), Ok(&b"abc"[..]), "{value:?}");
        }
    }

    #[test]
    fn other_schemes_are_a_missing_token() {
        for value in ["", " ", "Bearer", "Bearer ", "Bearerabc", "Basic abc", "abc", "B\u{e9}arer"]
        {
            assert_eq!(token(Some(value.as_bytes())), Err(AuthError::MissingToken), "{value:?}");
        }
        assert_eq!(token(None), Err(AuthError::MissingToken));
    }

    #[test]
    fn the_longest_token_is_16_kib() {
        let longest = format!("Bearer {}", "a".repeat(MAX_BYTES));
        assert_eq!(token(Some(longest.as_bytes())).unwrap().len(), MAX_BYTES);
        let longer = format!("{longest}a");
        assert_eq!(token(Some(longer.as_bytes())), Err(TokenError::TooLong.into()));
    }
}
