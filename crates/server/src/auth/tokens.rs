//! Tokens that this server was told, rather than those that an issuer vouches for.

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use subtle::{ConditionallySelectable, ConstantTimeEq};

use super::{Actor, AdminToken, Role};
use crate::config::AuthConfig;

type Digest = [u8; SHA256_OUTPUT_LEN];

/// Every token that is known by heart.
#[derive(Default)]
pub(super) struct Tokens(Vec<Known>);

/// A token's owner, and the digest to know it by.
struct Known {
    digest: Digest,
    name: String,
    role: Role,
}

// === impl Tokens ===

impl Tokens {
    pub(super) fn new(config: &AuthConfig, admin: Option<&AdminToken>) -> Self {
        let told =
            config.tokens.iter().map(|told| Known::new(told.token.expose(), &told.name, told.role));
        let admin = admin.map(|admin| Known::new(admin.expose(), "admin", Role::Admin));
        Self(told.chain(admin).collect())
    }

    /// Whose token this is. Takes the same time whichever it is, or none: digests are compared
    /// in full, and all of them are.
    pub(super) fn owner(&self, token: &[u8]) -> Option<Actor> {
        let presented = sha256(token);
        let mut place = 0;
        for (other, known) in (1u32..).zip(&self.0) {
            place.conditional_assign(&other, presented.ct_eq(&known.digest));
        }
        let known = self.0.get(place.checked_sub(1)? as usize)?;
        Some(Actor { name: known.name.clone().into(), role: Some(known.role) })
    }
}

// === impl Known ===

impl Known {
    fn new(token: &str, name: &str, role: Role) -> Self {
        Self { digest: sha256(token.as_bytes()), name: name.to_owned(), role }
    }
}

fn sha256(token: &[u8]) -> Digest {
    let mut out = Digest::default();
    out.copy_from_slice(digest(&SHA256, token).as_ref());
    out
}
