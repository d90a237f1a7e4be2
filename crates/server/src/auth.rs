//! Who asks, and whether they may: the same for every surface.
//!
//! A surface hands the `authorization` value and an [`Action`] to [`Auth::authorize`], and gets an
//! [`Actor`] for its audit entries or an [`AuthError`] to render in its own words.

mod action;
mod actor;
mod admin_token;
mod bearer;
mod claims;
mod error;
pub(crate) mod fetch;
mod jwks;
mod jwt;
mod key;
mod role;
mod tokens;

use std::{sync::Arc, time::Duration};

use headgate::{Clock, Timestamp};
use headgate_config::Problem;

use self::{claims::Expected, error::Refusal, fetch::Source, jwks::Jwks, jwt::Jwt, tokens::Tokens};
use crate::config::{AuthConfig, AuthMode};

pub(crate) use self::{action::Action, actor::Actor, error::AuthError};
pub use self::{admin_token::AdminToken, role::Role};

/// Decides who may do what.
pub(crate) struct Auth {
    /// Everybody may do everything.
    off: bool,
    tokens: Tokens,
    jwt: Option<Jwt>,
}

impl Auth {
    /// Knows the tokens that `config` lists, those of its issuer, and the `admin` token. The issuer need
    /// not be there yet.
    ///
    /// # Errors
    ///
    /// When the system's certificate authorities cannot be read and the issuer is to be asked over TLS.
    pub(crate) fn new(
        config: &AuthConfig,
        admin: Option<&AdminToken>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let jwt = config.jwks_url.as_ref().map(|url| {
            let source = Source::new(url.get().clone()).map_err(|error| url.unusable(&error))?;
            let max_age = Duration::from_secs(config.jwks_cache_seconds.get());
            let expected = Expected {
                issuer: config.issuer.clone(),
                audience: config.audience.clone(),
                leeway: config.leeway_seconds.get(),
            };
            Ok(Jwt { keys: Jwks::new(source, max_age, Arc::clone(&clock)), expected, clock })
        });
        Ok(Self {
            off: config.mode == Some(AuthMode::Off),
            tokens: Tokens::new(config, admin),
            jwt: jwt.transpose()?,
        })
    }

    /// Says who sent the `authorization` value, if they may do `action`.
    ///
    /// Only a JWT is ever waited for, and only when its key is not at hand.
    pub(crate) async fn authorize(
        &self,
        authorization: Option<&[u8]>,
        action: Action,
    ) -> Result<Actor, AuthError> {
        if self.off {
            return Ok(Actor::anonymous());
        }
        self.identify(bearer::token(authorization)?).await?.permitted(action)
    }

    /// Whether everybody may do everything.
    pub(crate) const fn is_off(&self) -> bool {
        self.off
    }

    /// Says who brings `token`, and until when it proves that, if it ends by itself.
    pub(crate) async fn sign_in(
        &self,
        token: &[u8],
    ) -> Result<(Actor, Option<Timestamp>), AuthError> {
        if self.off {
            return Ok((Actor::anonymous(), None));
        }
        if token.len() > bearer::MAX_BYTES {
            return Err(Refusal::TooLong.into());
        }
        let (actor, until) = match (self.tokens.owner(token), &self.jwt) {
            (Some(actor), _) => (actor, None),
            (None, Some(jwt)) => {
                let (actor, until) = jwt.proof(token).await?;
                (actor, Some(until))
            }
            (None, None) => return Err(Refusal::Unknown.into()),
        };
        // Whoever may do nothing at all has nothing to look at.
        actor.permitted(Action::ReadRules).map(|actor| (actor, until))
    }

    async fn identify(&self, token: &[u8]) -> Result<Actor, Refusal> {
        match (self.tokens.owner(token), &self.jwt) {
            (Some(actor), _) => Ok(actor),
            (None, Some(jwt)) => jwt.bearer(token).await,
            (None, None) => Err(Refusal::Unknown),
        }
    }
}

#[cfg(test)]
mod tests;
