use thiserror::Error;

use crate::{Role, bearer};

/// A request that is not authorized. Messages never repeat the token.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AuthError {
    /// There is no bearer token, and no client certificate with a role.
    #[error("missing token: send it as authorization: Bearer TOKEN")]
    MissingToken,
    /// The token is invalid.
    #[error("{0}")]
    InvalidToken(#[from] TokenError),
    /// The cookie belongs to no session.
    #[error("session expired: sign in again")]
    NoSession,
    /// The request has a cookie or a client certificate, but may come from another site's page.
    #[error(
        "cross-site request: cookies and client certificates are accepted from the console's own \
         pages only, send a token"
    )]
    CrossSite,
    /// The token is valid, but its role does not allow the action.
    #[error("permission denied: this needs the role {needs} or a higher one")]
    PermissionDenied {
        /// Lowest role that allows it.
        needs: Role,
    },
}

/// An invalid token.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TokenError {
    /// It is longer than any token.
    #[error("token too long: at most {} bytes are accepted", bearer::MAX_BYTES)]
    TooLong,
    /// It is not configured, and there is no issuer.
    #[error("unknown token: check that it is complete, and meant for this server")]
    Unknown,
    /// It is not a signed JWT.
    #[error("malformed token: expected a signed JWT, check that it is complete")]
    Malformed,
    /// Its algorithm is not accepted, or not the one of its key.
    #[error("token algorithm not accepted: expected RS256, ES256 or EdDSA")]
    Algorithm,
    /// Its header has no `kid`.
    #[error("token names no key: the issuer must set kid")]
    NoKeyId,
    /// The issuer does not publish its key.
    #[error("unknown token key: the issuer does not publish it, get a new token")]
    UnknownKey,
    /// Its signature is invalid.
    #[error("invalid token signature: get a new token")]
    Signature,
    /// Its claims cannot be read.
    #[error("invalid token claims: exp is required, and every claim must have its type")]
    Claims,
    /// It has expired.
    #[error("token expired: get a new one")]
    Expired,
    /// It is not valid yet.
    #[error("token not valid yet: wait, or compare the clocks of issuer and server")]
    NotYetValid,
    /// Its issuer is not the configured one.
    #[error("token of another issuer: use the one that this server trusts")]
    Issuer,
    /// It is meant for another audience.
    #[error("token for another audience: request one for this server")]
    Audience,
    /// It names no actor.
    #[error("token without a name: it needs email, preferred_username or sub")]
    Nameless,
}

// === impl AuthError ===

impl AuthError {
    /// Returns the error code of the API.
    pub const fn code(self) -> &'static str {
        match self {
            Self::MissingToken => "SYS_AUTH_MISSING_TOKEN",
            Self::InvalidToken(_) => "SYS_AUTH_TOKEN_INVALID",
            Self::NoSession => "SYS_AUTH_SESSION_ENDED",
            Self::CrossSite => "SYS_AUTH_CROSS_SITE",
            Self::PermissionDenied { .. } => "SYS_AUTH_PERMISSION_DENIED",
        }
    }

    /// Returns the message, with a hint on how to fix the error.
    pub fn message(self) -> String {
        self.to_string()
    }
}
