//! The keys of a post's limits.

use std::net::IpAddr;

use crate::{
    identifier::{Identifier, Identifiers},
    post::Draft,
};

/// Keys of a post's limits: its author, by address and by nickname, and its content.
#[derive(Clone, Debug)]
pub struct Claim {
    address: Identifier,
    nickname: Option<Identifier>,
    content: Option<Identifier>,
}

impl Claim {
    /// Keys of `draft`, which came from `address`. It need not be valid: denials come before
    /// validation errors.
    pub fn new(identifiers: &Identifiers, address: IpAddr, draft: &Draft) -> Self {
        Self {
            address: identifiers.address(address),
            nickname: draft.nickname.as_deref().and_then(|name| identifiers.nickname(name)),
            content: draft.body.as_deref().and_then(|body| identifiers.content(body)),
        }
    }

    /// The author, by address and by nickname.
    pub fn authors(&self) -> impl Iterator<Item = &Identifier> {
        [&self.address].into_iter().chain(&self.nickname)
    }

    /// The content.
    pub fn content(&self) -> Option<&Identifier> {
        self.content.as_ref()
    }

    /// The address, for logs.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// The nickname, for logs.
    pub fn nickname(&self) -> &str {
        self.nickname.as_ref().map_or("-", Identifier::as_str)
    }
}
