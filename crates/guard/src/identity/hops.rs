//! Bounded parsing of forwarding headers, from the right.
//!
//! Every iterator here ends at the first item that is not an address.

use std::{
    iter,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str,
};

use http::{HeaderValue, header::GetAll};

/// Maximum number of addresses read.
pub(super) const MAX_HOPS: usize = 32;

/// Maximum length of header text read, from the right.
const MAX_BYTES: usize = 4096;

/// The addresses of `X-Forwarded-For`, right-most first.
pub(super) fn x_forwarded_for(lines: &GetAll<'_, HeaderValue>) -> impl Iterator<Item = IpAddr> {
    items(lines, |text| text.iter().rposition(|byte| *byte == b',')).map_while(address)
}

/// The addresses of `Forwarded`, right-most first.
pub(super) fn forwarded(lines: &GetAll<'_, HeaderValue>) -> impl Iterator<Item = IpAddr> {
    items(lines, |text| unquoted(text, b',')).map_while(|item| address(for_parameter(item)?))
}

/// The address of `X-Real-IP`.
///
/// The proxy replaces it, so there is one. Of several, the one from the proxy is unknown.
pub(super) fn x_real_ip(lines: &GetAll<'_, HeaderValue>) -> Option<IpAddr> {
    let mut lines = lines.iter();
    let line = lines.next().filter(|_| lines.next().is_none())?;
    address(line.to_str().ok()?.trim_matches(BLANK))
}

const BLANK: [char; 2] = [' ', '\t'];

/// The non-empty items of a list that spans several header lines, right-most first.
fn items<'a>(
    lines: &GetAll<'a, HeaderValue>,
    comma: impl Fn(&[u8]) -> Option<usize>,
) -> impl Iterator<Item = &'a str> {
    let mut lines = lines.iter().rev().map(HeaderValue::as_bytes);
    let mut unread = None;
    let mut budget = MAX_BYTES;
    let all = iter::from_fn(move || {
        let line: &[u8] = unread.take().or_else(|| lines.next())?;
        let reach = line.len().saturating_sub(budget);
        let item = match comma(&line[reach..]) {
            Some(at) => {
                let (before, after) = line.split_at(reach + at);
                unread = Some(before);
                &after[1..]
            }
            None => line,
        };
        // An item that exceeds the budget is dropped: cut off, it could parse as another address.
        budget = budget.checked_sub(item.len() + 1)?;
        Some(str::from_utf8(item).map_or("?", |item| item.trim_matches(BLANK)))
    });
    all.filter(|item| !item.is_empty())
}

/// Position of the last `separator` outside quotes.
///
/// Read from the right, so that a quote that a client opened and never closed affects only the text
/// to the left of it.
fn unquoted(text: &[u8], separator: u8) -> Option<usize> {
    let mut quoted = false;
    let at = text.iter().enumerate().rev().find(|&(at, &byte)| {
        let escaped = || text[..at].iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1;
        quoted ^= byte == b'"' && !(quoted && escaped());
        byte == separator && !quoted
    });
    at.map(|(at, _)| at)
}

/// The value of `for` in `for=192.0.2.60;proto=http;by=203.0.113.43`, unless it is repeated.
fn for_parameter(element: &str) -> Option<&str> {
    let mut found = None;
    let mut unread = Some(element);
    while let Some(text) = unread {
        let pair = match unquoted(text.as_bytes(), b';') {
            Some(at) => {
                unread = Some(&text[..at]);
                &text[at + 1..]
            }
            None => unread.take()?,
        };
        let Some((name, value)) = pair.split_once('=') else { continue };
        if name.trim_matches(BLANK).eq_ignore_ascii_case("for")
            && found.replace(value.trim_matches(BLANK)).is_some()
        {
            return None;
        }
    }
    let value = found?;
    match value.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"'),
        None => Some(value),
    }
}

/// The address in `192.0.2.1`, `192.0.2.1:567`, `2001:db8::1`, `[2001:db8::1]` or
/// `[2001:db8::1]:567`.
fn address(text: &str) -> Option<IpAddr> {
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (v6, port) = bracketed.split_once(']')?;
        let v6: Ipv6Addr = v6.parse().ok()?;
        (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(v6.into())
    } else if let Ok(address) = text.parse::<IpAddr>() {
        Some(address)
    } else {
        let (v4, port) = text.split_once(':')?;
        let v4: Ipv4Addr = v4.parse().ok()?;
        is_port(port).then_some(v4.into())
    };
    address.map(|address: IpAddr| address.to_canonical())
}

/// A number, or an obfuscated port as in RFC 7239: `_http`.
fn is_port(text: &str) -> bool {
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(is_name),
        None => text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}
