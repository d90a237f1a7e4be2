//! Client certificates of the configuration: their names and roles.

use headgate_tls::{ClientCertificate, SubjectName};

use crate::{Actor, AuthConfig, AuthMethod, Role};

/// Names of client certificates that have a role.
#[derive(PartialEq, Eq)]
pub(crate) struct ClientCertificates(Vec<NamedRole>);

/// A pattern of names, and the role of clients with such a name.
#[derive(PartialEq, Eq)]
struct NamedRole {
    pattern: NamePattern,
    role: Role,
}

/// A pattern of one kind of names. `*` matches any characters but the separator of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamePattern {
    kind: NameKind,
    text: String,
}

/// A kind of subject alternative names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameKind {
    Dns,
    Uri,
    Email,
}

// === impl ClientCertificates ===

impl ClientCertificates {
    pub(crate) fn new(config: &AuthConfig) -> Self {
        let rules = config.client_certificates.iter();
        let rules =
            rules.map(|it| NamedRole { pattern: NamePattern::new(&it.name), role: it.role });
        Self(rules.collect())
    }

    /// Returns the client whose certificate has a configured name. The first entry that matches
    /// decides; the audit log has the name of the certificate.
    pub(crate) fn owner(&self, certificate: &ClientCertificate) -> Option<Actor> {
        self.0.iter().find_map(|rule| {
            let name = certificate.names().iter().find(|name| rule.pattern.matches(name))?;
            let (name, role) = (name.as_str().to_owned().into(), Some(rule.role));
            Some(Actor { name, role, method: AuthMethod::Certificate })
        })
    }
}

// === impl NamePattern ===

impl NamePattern {
    /// The kind follows from the form: a URI has `://`, an e-mail address has `@`.
    pub(crate) fn new(text: &str) -> Self {
        if text.contains("://") {
            Self { kind: NameKind::Uri, text: text.to_owned() }
        } else if text.contains('@') {
            Self { kind: NameKind::Email, text: text.to_owned() }
        } else {
            Self { kind: NameKind::Dns, text: text.to_ascii_lowercase() }
        }
    }

    /// Returns `true` if `name` is of the same kind and matches.
    pub(crate) fn matches(&self, name: &SubjectName) -> bool {
        let (kind, separator) = match name {
            SubjectName::Dns(_) => (NameKind::Dns, b'.'),
            SubjectName::Uri(_) => (NameKind::Uri, b'/'),
            SubjectName::Email(_) => (NameKind::Email, b'@'),
        };
        kind == self.kind && matches(self.text.as_bytes(), name.as_str().as_bytes(), separator)
    }
}

/// Matches without recursion: after a mismatch, the last `*` takes one character more.
fn matches(pattern: &[u8], name: &[u8], separator: u8) -> bool {
    let (mut at, mut place) = (0, 0);
    // Places after the last `*`, and in the name where it ends.
    let mut star = None;
    while place < name.len() {
        match (pattern.get(at), star) {
            (Some(b'*'), _) => {
                at += 1;
                star = Some((at, place));
            }
            (Some(byte), _) if *byte == name[place] => {
                at += 1;
                place += 1;
            }
            (_, Some((after, end))) if name[end] != separator => {
                at = after;
                place = end + 1;
                star = Some((after, place));
            }
            _ => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dns(name: &str) -> SubjectName {
        SubjectName::Dns(name.to_owned())
    }

    fn uri(name: &str) -> SubjectName {
        SubjectName::Uri(name.to_owned())
    }

    fn email(name: &str) -> SubjectName {
        SubjectName::Email(name.to_owned())
    }

    #[test]
    fn a_star_matches_within_a_segment() {
        for (pattern, name, expected) in [
            ("gateway.example", dns("gateway.example"), true),
            ("Gateway.Example", dns("gateway.example"), true),
            ("gateway.example", dns("gateway.example.evil"), false),
            ("gateway.example", dns("agateway.example"), false),
            ("*.example", dns("gateway.example"), true),
            ("*.example", dns("a.gateway.example"), false),
            ("*.example", dns("example"), false),
            ("spiffe://c/ns/*/sa/api", uri("spiffe://c/ns/prod/sa/api"), true),
            ("spiffe://c/ns/*/sa/api", uri("spiffe://c/ns/a/b/sa/api"), false),
            ("spiffe://c/ns/*/sa/*", uri("spiffe://c/ns/prod/sa/api"), true),
            ("spiffe://c/ns/*/sa/*", uri("spiffe://c/ns/prod/sa/api/x"), false),
            ("spiffe://c/ns/p*d/sa/api", uri("spiffe://c/ns/prod/sa/api"), true),
            ("spiffe://c/*", uri("spiffe://c/"), true),
            ("*@example.com", email("ops@example.com"), true),
            ("*@example.com", email("a@b@example.com"), false),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(&name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_name_of_another_kind_does_not_match() {
        // A CA may let clients choose names of some kinds only.
        assert!(!NamePattern::new("gateway.example").matches(&uri("gateway.example")));
        assert!(!NamePattern::new("gateway.example").matches(&email("gateway.example")));
        assert!(!NamePattern::new("ops@example.com").matches(&dns("ops@example.com")));
        assert!(!NamePattern::new("spiffe://c/api").matches(&dns("spiffe://c/api")));
    }
}
