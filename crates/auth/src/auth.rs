use std::{sync::Arc, time::Duration};

use headgate::{Clock, Timestamp};
use headgate_config::Problem;
use headgate_tls_client::Certificates;

use crate::{
    Action, Actor, AdminToken, AuthConfig, AuthError, AuthMethod, AuthMode, Credentials,
    TokenError, bearer, claims::ExpectedClaims, client_certificates::ClientCertificates,
    fetch::JwksEndpoint, jwks::Jwks, jwt::JwtVerifier, static_tokens::StaticTokens,
};

/// Authenticates and authorizes callers.
pub struct Auth {
    /// `auth.mode: off`: every request is allowed.
    off: bool,
    tokens: StaticTokens,
    certificates: ClientCertificates,
    jwt: Option<JwtVerifier>,
    /// Authorities of the issuer's certificate.
    authorities: Certificates,
    config: AuthConfig,
}

impl Auth {
    /// Accepts the tokens of `config`, those of its issuer, and the `admin` token. The issuer may
    /// still be unreachable.
    ///
    /// # Errors
    ///
    /// When the issuer is reached over TLS and the system's certificate authorities cannot be read.
    pub fn new(
        config: &AuthConfig,
        admin: Option<&AdminToken>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        Self::build(config, admin, clock, None)
    }

    /// Accepts what `config` says from now on. The keys of an issuer that stays are kept.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn reconfigured(
        &self,
        config: &AuthConfig,
        admin: Option<&AdminToken>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Problem> {
        let same_keys = self.config.jwks_url == config.jwks_url
            // The file may have other contents under the same path.
            && config.certificates().is_ok_and(|new| new == self.authorities)
            && self.config.jwks_cache_seconds == config.jwks_cache_seconds;
        let keys = self.jwt.as_ref().map(|jwt| jwt.keys.clone());
        Self::build(config, admin, clock, keys.filter(|_| same_keys))
    }

    /// Accepts the `admin` token, too.
    #[must_use]
    pub fn with_admin(self, admin: &AdminToken) -> Self {
        Self { tokens: StaticTokens::new(&self.config, Some(admin)), ..self }
    }

    fn build(
        config: &AuthConfig,
        admin: Option<&AdminToken>,
        clock: Arc<dyn Clock>,
        keys: Option<Jwks>,
    ) -> Result<Self, Problem> {
        let authorities = config
            .certificates()
            .map_err(|error| Problem::new("auth.ca_file", error.to_string()))?;
        let jwt = config.jwks_url.as_ref().map(|url| {
            let keys = if let Some(keys) = keys {
                keys
            } else {
                let endpoint = JwksEndpoint::new(url.get().clone(), &authorities)
                    .map_err(|error| url.unusable(&error))?;
                let max_age = Duration::from_secs(config.jwks_cache_seconds.get());
                Jwks::new(endpoint, max_age, Arc::clone(&clock))
            };
            let expected = ExpectedClaims {
                issuer: config.issuer.clone(),
                audience: config.audience.clone(),
                leeway: config.leeway_seconds.get(),
            };
            Ok(JwtVerifier { keys, expected, clock })
        });
        Ok(Self {
            off: config.mode == Some(AuthMode::Off),
            tokens: StaticTokens::new(config, admin),
            certificates: ClientCertificates::new(config),
            jwt: jwt.transpose()?,
            authorities,
            config: config.clone(),
        })
    }

    /// Returns true if `actor`, whom `before` has authenticated, is still accepted: by the same
    /// static token with the same role, by the same issuer under the same conditions, or by the same
    /// names of client certificates.
    pub fn still_accepts(&self, actor: &Actor, before: &Self) -> bool {
        if self.off || before.off {
            return self.off;
        }
        match actor.method {
            AuthMethod::Off => false,
            AuthMethod::Token => {
                let token = before.tokens.named(&actor.name);
                token.is_some() && self.tokens.named(&actor.name) == token
            }
            AuthMethod::Certificate => self.certificates == before.certificates,
            AuthMethod::Issuer => self.trusts_issuer_of(before),
        }
    }

    /// Returns true if it accepts the JWTs that `before` accepts.
    fn trusts_issuer_of(&self, before: &Self) -> bool {
        let conditions = |config: &AuthConfig| (config.issuer.clone(), config.audience.clone());
        self.config.jwks_url.is_some()
            && self.config.jwks_url == before.config.jwks_url
            && conditions(&self.config) == conditions(&before.config)
    }

    /// Returns the owner of `credentials`, if it may do `action`.
    ///
    /// Waits only for a JWT whose key is not cached.
    ///
    /// # Errors
    ///
    /// When there is no valid token and no known certificate, or the role does not allow the action.
    pub async fn authorize(
        &self,
        credentials: Credentials<'_>,
        action: Action,
    ) -> Result<Actor, AuthError> {
        if self.off {
            return Ok(Actor::anonymous());
        }
        let Credentials { authorization, certificate } = credentials;
        let certificate = certificate.filter(|_| authorization.is_none());
        if let Some(actor) = certificate.and_then(|it| self.certificates.owner(it)) {
            return actor.permitted(action);
        }
        self.identify(bearer::token(authorization)?).await?.permitted(action)
    }

    /// Returns `true` if authentication is off and every request is allowed.
    pub const fn is_off(&self) -> bool {
        self.off
    }

    /// Returns the owner of `token`, and the time at which the token expires, if it does.
    ///
    /// # Errors
    ///
    /// When the token is invalid, or has no role that may do anything.
    pub async fn sign_in(&self, token: &[u8]) -> Result<(Actor, Option<Timestamp>), AuthError> {
        if self.off {
            return Ok((Actor::anonymous(), None));
        }
        if token.len() > bearer::MAX_BYTES {
            return Err(TokenError::TooLong.into());
        }
        let (actor, expires_at) = match (self.tokens.owner(token), &self.jwt) {
            (Some(actor), _) => (actor, None),
            (None, Some(jwt)) => {
                let (actor, expires_at) = jwt.verify(token).await?;
                (actor, Some(expires_at))
            }
            (None, None) => return Err(TokenError::Unknown.into()),
        };
        // An actor without a role could not see a single page.
        actor.permitted(Action::ReadRules).map(|actor| (actor, expires_at))
    }

    async fn identify(&self, token: &[u8]) -> Result<Actor, TokenError> {
        match (self.tokens.owner(token), &self.jwt) {
            (Some(actor), _) => Ok(actor),
            (None, Some(jwt)) => Ok(jwt.verify(token).await?.0),
            (None, None) => Err(TokenError::Unknown),
        }
    }
}
