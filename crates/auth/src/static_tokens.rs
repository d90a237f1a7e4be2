//! Tokens of the configuration, and the admin token.

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use crate::{Actor, AdminToken, AuthConfig, AuthMethod, Role};

type Digest = [u8; SHA256_OUTPUT_LEN];

/// Every token that needs no issuer.
#[derive(Default)]
pub(crate) struct StaticTokens(Vec<StaticToken>);

/// The digest of a token, and its owner.
#[derive(PartialEq, Eq)]
pub(crate) struct StaticToken {
    digest: Digest,
    name: String,
    role: Role,
}

// === impl StaticTokens ===

impl StaticTokens {
    pub(crate) fn new(config: &AuthConfig, admin: Option<&AdminToken>) -> Self {
        let configured = config
            .tokens
            .iter()
            .map(|config| StaticToken::new(config.token.expose(), &config.name, config.role));
        let admin = admin.map(|admin| StaticToken::new(admin.expose(), "admin", Role::Admin));
        Self(configured.chain(admin).collect())
    }

    /// Returns the owner of `token`, in constant time: every digest is compared in full.
    pub(crate) fn owner(&self, token: &[u8]) -> Option<Actor> {
        let presented = sha256(token);
        let mut index = 0;
        for (other, known) in (1u32..).zip(&self.0) {
            index.conditional_assign(&other, presented.ct_eq(&known.digest));
        }
        let known = self.0.get(index.checked_sub(1)? as usize)?;
        let (name, role) = (known.name.clone().into(), Some(known.role));
        Some(Actor { name, role, method: AuthMethod::Token })
    }

    /// Returns the token of an owner.
    pub(crate) fn named(&self, name: &str) -> Option<&StaticToken> {
        self.0.iter().find(|token| token.name == name)
    }
}

// === impl StaticToken ===

impl StaticToken {
    fn new(token: &str, name: &str, role: Role) -> Self {
        Self { digest: sha256(token.as_bytes()), name: name.to_owned(), role }
    }
}

fn sha256(token: &[u8]) -> Digest {
    let mut out = Digest::default();
    out.copy_from_slice(digest(&SHA256, token).as_ref());
    out
}
