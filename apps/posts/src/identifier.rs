//! Identifiers that do not reveal whom they identify.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
};

use headgate_app_common::Secret;
use headgate_guard::{AddressKey, Ipv6Prefix};
use ring::{digest, hmac};

use crate::{duplicates, invisible::visible};

/// Key of a limit: the kind of subject, and a hash of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier(String);

/// Makes identifiers, with a secret if there is one.
///
/// Without a secret they are plain hashes, as other programs make them; an IPv4 address can be
/// found by hashing all addresses. With a secret it cannot.
#[derive(Debug, Default)]
pub struct Identifiers {
    secret: Option<hmac::Key>,
    ipv6: Ipv6Prefix,
}

/// Hex digits of an author's hash.
const AUTHOR_DIGITS: usize = 16;

// === impl Identifier ===

impl Identifier {
    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Identifiers ===

impl Identifiers {
    /// Makes identifiers with `secret`, and of IPv6 networks of this length.
    pub fn new(secret: Option<&Secret>, ipv6: Ipv6Prefix) -> Self {
        let key = |secret: &Secret| hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
        Self { secret: secret.map(key), ipv6 }
    }

    /// Identifier of `address`. IPv6 counts by network, all of which belongs to one subscriber.
    pub fn address(&self, address: IpAddr) -> Identifier {
        let network = AddressKey::grouped("", address, self.ipv6);
        Identifier(format!("ip#{:.AUTHOR_DIGITS$}", self.hash(&network)))
    }

    /// Identifier of `nickname` without invisible characters and surrounding space; `None` if
    /// nothing is left.
    pub fn nickname(&self, nickname: &str) -> Option<Identifier> {
        let seen: String = visible(nickname).collect();
        let nickname = Some(seen.trim()).filter(|nickname| !nickname.is_empty())?;
        Some(Identifier(format!("nick#{:.AUTHOR_DIGITS$}", self.hash(nickname))))
    }

    /// Identifier of `body` and its spelling variants; `None` if it is empty.
    pub fn content(&self, body: &str) -> Option<Identifier> {
        let content = Some(duplicates::normalise(body)).filter(|content| !content.is_empty())?;
        Some(Identifier(format!("body#{}", self.hash(&content))))
    }

    /// SHA-256 in hex, keyed if there is a secret.
    fn hash(&self, text: &str) -> String {
        match &self.secret {
            None => hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref()),
            Some(secret) => hex(hmac::sign(secret, text.as_bytes()).as_ref()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(address: &str) -> String {
        Identifiers::default().address(address.parse().unwrap()).to_string()
    }

    fn nickname(nickname: &str) -> Option<String> {
        Identifiers::default().nickname(nickname).map(|name| name.to_string())
    }

    #[test]
    fn author_identifiers_are_a_prefix_and_sixteen_hex_digits_of_sha_256() {
        assert_eq!(address("127.0.0.1"), "ip#12ca17b49af22894");
        assert_eq!(address("192.168.1.1"), "ip#c5eb5a4cc76a5cdb");
        assert_eq!(address("192.168.1.2"), "ip#26702f5a55cf837a");
        assert_eq!(address("10.0.0.1"), "ip#f5047344122f0dee");
        assert_eq!(nickname("太郎").as_deref(), Some("nick#3e63216aec8dbdf6"));
        assert_eq!(nickname("次郎").as_deref(), Some("nick#3f46e8d95187fe3f"));
    }

    #[test]
    fn space_around_a_nickname_is_ignored() {
        for same in [" 太郎 ", "\u{3000}太郎\u{3000}", "太郎\n", "\u{a0}太郎"] {
            assert_eq!(nickname(same), nickname("太郎"), "{same:?}");
        }
        assert_ne!(nickname("太 郎"), nickname("太郎"));
        assert_eq!(nickname(" \u{3000} "), None);
    }

    #[test]
    fn invisible_characters_make_no_other_nickname() {
        for same in ["太郎\u{200b}", "太\u{200d}郎", "\u{feff} 太郎 \u{e0041}", "太\0郎"] {
            assert_eq!(nickname(same), nickname("太郎"), "{same:?}");
        }
        assert_eq!(nickname("\u{200b} \u{3164}"), None);
        assert_ne!(nickname("Taro"), nickname("taro"));
    }

    #[test]
    fn an_ipv6_network_is_one_address() {
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:10.0.0.1"), address("10.0.0.1"));
        let wider = Identifiers::new(None, Ipv6Prefix::new(56).unwrap());
        let by_56 = |text: &str| wider.address(text.parse().unwrap()).to_string();
        assert_eq!(by_56("2001:db8:1:2::1"), by_56("2001:db8:1:3::1"));
        assert_ne!(by_56("2001:db8:1:2::1"), by_56("2001:db8:1:103::1"));
    }

    #[test]
    fn a_secret_changes_identifiers_but_not_their_form() {
        let keyed = |secret: &str| {
            let secret = Secret::new(secret.to_owned());
            Identifiers::new(Some(&secret), Ipv6Prefix::default())
                .address([10, 0, 0, 1].into())
                .to_string()
        };
        let name = keyed("0123456789abcdef");
        assert_eq!(name, keyed("0123456789abcdef"));
        assert_ne!(name, keyed("fedcba9876543210"));
        assert_ne!(name, address("10.0.0.1"));
        assert_eq!(name.len(), 19);
    }

    #[test]
    fn a_body_is_identified_by_its_whole_hash() {
        let name = |body| Identifiers::default().content(body).map(|name| name.to_string());
        assert_eq!(name("abc").map(|name| name.len()), Some("body#".len() + 64));
        assert_eq!(name("ﾗｰﾒﾝ  食べたい"), name(" らーめん 食べたい\u{3000}"));
        assert_eq!(name(" \u{3000}"), None);
    }
}
