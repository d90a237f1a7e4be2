//! The claims of a JWT, and their validation.

use headgate::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::{Actor, AuthMethod, Role, TokenError};

/// Claims of a JWT. A claim of an unexpected type makes the token invalid: it never counts as
/// absent.
#[derive(Debug, Deserialize)]
pub(crate) struct Claims {
    exp: f64,
    #[serde(default, deserialize_with = "not_null")]
    nbf: Option<f64>,
    #[serde(default, deserialize_with = "not_null")]
    iss: Option<String>,
    #[serde(default, deserialize_with = "not_null")]
    aud: Option<OneOrMany>,
    email: Option<String>,
    preferred_username: Option<String>,
    sub: Option<String>,
    realm_access: Option<RealmAccess>,
}

#[derive(Debug, Deserialize)]
struct RealmAccess {
    #[serde(default)]
    roles: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Expected claims of a token.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedClaims {
    pub(crate) issuer: Option<String>,
    pub(crate) audience: Option<String>,
    /// Tolerated clock skew between the issuer and this server, in seconds.
    pub(crate) leeway: u64,
}

/// Longest name in an audit entry.
const MAX_NAME_CHARS: usize = 256;

// === impl ExpectedClaims ===

impl ExpectedClaims {
    /// Returns the actor that `claims` name, if they are valid at `now`.
    pub(crate) fn actor(&self, claims: &Claims, now: Timestamp) -> Result<Actor, TokenError> {
        let (now, leeway) = (now.as_micros() as f64 / 1e6, self.leeway as f64);
        if now >= claims.exp + leeway {
            return Err(TokenError::Expired);
        }
        if claims.nbf.is_some_and(|nbf| now < nbf - leeway) {
            return Err(TokenError::NotYetValid);
        }
        if self.issuer.is_some() && claims.iss != self.issuer {
            return Err(TokenError::Issuer);
        }
        if self.audience.as_ref().is_some_and(|audience| !claims.are_for(audience)) {
            return Err(TokenError::Audience);
        }
        let name = claims.name().ok_or(TokenError::Nameless)?;
        Ok(Actor { name: name.into(), role: claims.role(), method: AuthMethod::Issuer })
    }

    /// Returns the time at which `claims` expire.
    pub(crate) fn expires_at(&self, claims: &Claims) -> Timestamp {
        let seconds = (claims.exp + self.leeway as f64).max(0.0);
        Timestamp::from_micros((seconds * 1e6) as u64)
    }
}

// === impl Claims ===

impl Claims {
    fn are_for(&self, audience: &str) -> bool {
        match &self.aud {
            Some(OneOrMany::One(one)) => one == audience,
            Some(OneOrMany::Many(many)) => many.iter().any(|one| one == audience),
            None => false,
        }
    }

    fn name(&self) -> Option<String> {
        let names = [&self.email, &self.preferred_username, &self.sub];
        let visible = |name: &String| -> String {
            name.chars().filter(|char| !char.is_control()).take(MAX_NAME_CHARS).collect()
        };
        names.into_iter().flatten().map(visible).find(|name| !name.is_empty())
    }

    fn role(&self) -> Option<Role> {
        let roles = self.realm_access.iter().flat_map(|access| &access.roles);
        Role::highest(roles.map(String::as_str))
    }
}

fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}
