//! The token in an `authorization` header or metadata value.

use super::{AuthError, error::Refusal};

/// No token is longer than this; those of a realm with many roles have some kilobytes.
pub(super) const MAX_BYTES: usize = 16 * 1024;

const SCHEME: &[u8] = b"bearer";

/// The token in `authorization`, if it is one of ours to look at.
pub(super) fn token(authorization: Option<&[u8]>) -> Result<&[u8], AuthError> {
    let value = authorization.ok_or(AuthError::MissingToken)?.trim_ascii();
    let (scheme, rest) = value.split_at_checked(SCHEME.len()).ok_or(AuthError::MissingToken)?;
    if !scheme.eq_ignore_ascii_case(SCHEME) || !rest.first().is_some_and(u8::is_ascii_whitespace) {
        return Err(AuthError::MissingToken);
    }
    match rest.trim_ascii_start() {
        token if token.len() > MAX_BYTES => Err(Refusal::TooLong.into()),
        token => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_is_written_in_any_case() {
        for value in ["Bearer abc", "bearer abc", "BEARER  abc ", " BeArEr\tabc"] {
            assert_eq!(token(Some(value.as_bytes())), Ok(&b"abc"[..]), "{value:?}");
        }
    }

    #[test]
    fn without_a_bearer_token_one_is_missing() {
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
        assert_eq!(token(Some(longer.as_bytes())), Err(Refusal::TooLong.into()));
    }
}
