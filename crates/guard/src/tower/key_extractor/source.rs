use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};

use super::{KeyExtractor, request_key::Digest};
use crate::{AddressKey, RequestHead};

/// The parts of a request that a key is made of.
#[derive(Clone)]
pub(super) enum Source {
    Address,
    Header(HeaderName),
    BearerToken,
    #[cfg(feature = "jwt")]
    Claim(Box<str>),
    Path,
    PathSegment(usize),
    Closure(Arc<Find>),
    Both(Arc<(Source, Source)>),
    Either(Arc<(Source, Source)>),
}

type Find = dyn for<'a> Fn(&RequestHead<'a>) -> Option<Cow<'a, str>> + Send + Sync;

impl Source {
    /// Adds the value to `digest`, or returns `None` if it is missing. The name of a header or a
    /// claim is added as well: layers of one guard share their counters, and equal values of
    /// different headers are different clients.
    pub(super) fn write(
        &self,
        head: &RequestHead<'_>,
        client: &impl Fn() -> Option<AddressKey>,
        digest: &mut Digest,
    ) -> Option<()> {
        match self {
            Self::Address => digest.write(self.kind(), client()?.as_bytes()),
            Self::Header(name) => {
                let value = usable(only_value(head.headers, name)?)?;
                digest.write(self.kind(), name.as_str().as_bytes());
                digest.write(self.kind(), value);
            }
            Self::BearerToken => digest.write(self.kind(), bearer_token(head.headers)?),
            #[cfg(feature = "jwt")]
            Self::Claim(name) => {
                let claim = super::claim::of_token(bearer_token(head.headers)?, name)?;
                digest.write(self.kind(), name.as_bytes());
                digest.write(self.kind(), usable(claim.as_bytes())?);
            }
            Self::Path => {
                let path = usable(head.uri.path().as_bytes())?;
                digest.write(self.kind(), &percent_decoded(path));
            }
            Self::PathSegment(index) => {
                let segment = head.uri.path().split('/').skip(1).nth(*index)?;
                digest.write(self.kind(), &(*index as u64).to_be_bytes());
                digest.write(self.kind(), &percent_decoded(usable(segment.as_bytes())?));
            }
            Self::Closure(find) => digest.write(self.kind(), usable(find(head)?.as_bytes())?),
            Self::Both(sources) => {
                sources.0.write(head, client, digest)?;
                sources.1.write(head, client, digest)?;
            }
            Self::Either(sources) => {
                // Discards the input of an alternative that turns out to be missing.
                let mut first = digest.clone();
                if sources.0.write(head, client, &mut first).is_some() {
                    *digest = first;
                    digest.write_alternative(0);
                } else {
                    sources.1.write(head, client, digest)?;
                    digest.write_alternative(1);
                }
            }
        }
        Some(())
    }

    /// Distinguishes equal values of different kinds.
    const fn kind(&self) -> u8 {
        match self {
            Self::Address => 1,
            Self::Header(_) => 2,
            Self::BearerToken => 3,
            #[cfg(feature = "jwt")]
            Self::Claim(_) => 4,
            Self::Path => 5,
            Self::PathSegment(_) => 6,
            Self::Closure(_) => 7,
            Self::Both(_) | Self::Either(_) => 0,
        }
    }
}

/// The value, unless it is empty or too long to be hashed for each request.
fn usable(value: &[u8]) -> Option<&[u8]> {
    (1..=KeyExtractor::MAX_VALUE_BYTES).contains(&value.len()).then_some(value)
}

/// The value of a header that was sent once. With several values, the service might use another one
/// than the guard, and a client could vary the one that is counted.
fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = only_value(headers, &AUTHORIZATION)?;
    let (scheme, token) = value.split_at_checked(7)?;
    let token = scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())?;
    usable(token)
}

/// The text with `%41` replaced by `A`. Invalid escapes are kept.
fn percent_decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'%') {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = (byte == b'%').then(|| hex_pair(after)).flatten();
        decoded.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(decoded)
}

fn hex_pair(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    Some((digit(0)? << 4 | digit(1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_decoding_leaves_invalid_escapes_as_they_are() {
        let cases =
            [("/abc", "/abc"), ("/%61b%63", "/abc"), ("/100%", "/100%"), ("/%zz%4", "/%zz%4")];
        for (text, expected) in cases {
            assert_eq!(&*percent_decoded(text.as_bytes()), expected.as_bytes(), "{text}");
        }
        assert_eq!(&*percent_decoded(b"%E2%82%AC"), "€".as_bytes());
    }

    #[test]
    fn a_bearer_token_is_read_from_a_single_header() {
        let token = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, value.parse().unwrap());
            }
            bearer_token(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(token(&["Bearer abc"]).as_deref(), Some(&b"abc"[..]));
        assert_eq!(token(&["BEARER  abc "]).as_deref(), Some(&b"abc"[..]));
        for missing in
            [&[][..], &["Bearer "], &["Basic abc"], &["Bearerabc"], &["Bearer a", "Bearer b"]]
        {
            assert_eq!(token(missing), None, "{missing:?}");
        }
        assert_eq!(token(&[&format!("Bearer {}", "a".repeat(8193))]), None, "too long");
    }
}
