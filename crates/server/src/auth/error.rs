use thiserror::Error;

use super::{Role, bearer};

/// Why a caller may not do what it asked for. What it sent is never repeated.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum AuthError {
    /// There is no bearer token.
    #[error("a token is needed here: send it as authorization: Bearer TOKEN")]
    MissingToken,
    /// There is a token, but it proves nothing.
    #[error("{0}")]
    InvalidToken(#[from] Refusal),
    /// There is a cookie, but no session that it belongs to.
    #[error("the session has ended: sign in again")]
    NoSession,
    /// There is a cookie, but the request may come from another site's page.
    #[error("a cookie is believed only from the console's own pages: send a token instead")]
    CrossSite,
    /// The token is good, but not for this.
    #[error("the role {needs} or a higher one is needed here: ask for a token that has it")]
    PermissionDenied {
        /// The least role that would do.
        needs: Role,
    },
}

/// Why a token proves nothing.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Refusal {
    #[error(
        "the token is longer than {} bytes: send one that this server or its issuer gave out",
        bearer::MAX_BYTES
    )]
    TooLong,
    #[error("the token is not known here: check that it is complete, and meant for this server")]
    Unknown,
    #[error("the token is not a signed JWT: check that it is complete")]
    Malformed,
    #[error("the token's algorithm is not accepted: it must be RS256, ES256 or EdDSA")]
    Algorithm,
    #[error("the token's header names no key: the issuer must set kid")]
    NoKeyId,
    #[error("the key that signed the token is not published by the issuer: get a new token")]
    UnknownKey,
    #[error("the token's signature does not match its contents: get a new token")]
    Signature,
    #[error("the token's claims cannot be read: exp must be there, and every claim of its type")]
    Claims,
    #[error("the token has expired: get a new one")]
    Expired,
    #[error("the token is not valid yet: wait, or compare the issuer's clock with the server's")]
    NotYetValid,
    #[error("the token is from another issuer than the one that is trusted here")]
    Issuer,
    #[error("the token is meant for another audience: ask for one for this server")]
    Audience,
    #[error("the token names nobody: it needs email, preferred_username or sub")]
    Nameless,
}

// === impl AuthError ===

impl AuthError {
    /// The code that programs look at.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::MissingToken => "SYS_AUTH_MISSING_TOKEN",
            Self::InvalidToken(_) => "SYS_AUTH_TOKEN_INVALID",
            Self::NoSession => "SYS_AUTH_SESSION_ENDED",
            Self::CrossSite => "SYS_AUTH_CROSS_SITE",
            Self::PermissionDenied { .. } => "SYS_AUTH_PERMISSION_DENIED",
        }
    }

    /// What the caller is told: what is wrong, and what to do.
    pub(crate) fn message(self) -> String {
        self.to_string()
    }
}
