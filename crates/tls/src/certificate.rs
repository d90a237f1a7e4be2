//! The fields of an X.509 certificate that are not rustls' business: validity and names.

use std::ops::RangeInclusive;

use jiff::{civil::DateTime, tz::TimeZone};

use crate::{client::SubjectName, der::Reader};

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// `id-ce-subjectAltName`.
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

const RFC822_NAME: u8 = 0x81;
const DNS_NAME: u8 = 0x82;
const URI: u8 = 0x86;

/// Longest name that is read, and largest number of them.
const MAX_NAME_BYTES: usize = 2048;
const MAX_NAMES: usize = 1024;

/// Validity and names of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// First and last second at which it is valid, since 1970.
    pub(crate) validity: RangeInclusive<i64>,
    /// Subject alternative names: DNS names, URIs and e-mail addresses.
    pub(crate) names: Vec<SubjectName>,
}

impl Certificate {
    /// Reads a certificate, whose signature is not checked here.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let mut fields = Reader::new(der).sequence()?.sequence()?;
        let _version = fields.optional(VERSION);
        let _serial = fields.expect(INTEGER)?;
        let _algorithm = fields.sequence()?;
        let _issuer = fields.sequence()?;
        let mut validity = fields.sequence()?;
        let validity = time(&mut validity)?..=time(&mut validity)?;
        let _subject = fields.sequence()?;
        let _public_key = fields.sequence()?;
        let mut names = Vec::new();
        while let Some((tag, content)) = fields.next() {
            if tag == EXTENSIONS {
                names = alt_names(Reader::new(content).sequence()?).unwrap_or_default();
            }
        }
        Some(Self { validity, names })
    }

    /// DNS names, in lower case.
    pub(crate) fn dns_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter_map(|name| match name {
            SubjectName::Dns(name) => Some(name.as_str()),
            SubjectName::Uri(_) | SubjectName::Email(_) => None,
        })
    }
}

fn alt_names(mut extensions: Reader<'_>) -> Option<Vec<SubjectName>> {
    while let Some(mut extension) = extensions.sequence() {
        let id = extension.expect(OBJECT_IDENTIFIER)?;
        if id != SUBJECT_ALT_NAME {
            continue;
        }
        // Preceded by a flag, if the extension is critical.
        let (tag, mut value) = extension.next()?;
        if tag != OCTET_STRING {
            value = extension.expect(OCTET_STRING)?;
        }
        let mut encoded = Reader::new(value).sequence()?;
        let names = std::iter::from_fn(|| encoded.next()).take(MAX_NAMES);
        return Some(names.filter_map(|(tag, name)| alt_name(tag, name)).collect());
    }
    None
}

fn alt_name(tag: u8, name: &[u8]) -> Option<SubjectName> {
    let is_text = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    let name = str::from_utf8(name).ok().filter(|name| is_text && name.len() <= MAX_NAME_BYTES)?;
    match tag {
        DNS_NAME => Some(SubjectName::Dns(name.to_ascii_lowercase())),
        URI => Some(SubjectName::Uri(name.to_owned())),
        RFC822_NAME => Some(SubjectName::Email(name.to_owned())),
        _ => None,
    }
}

/// Reads a time in seconds since 1970.
fn time(fields: &mut Reader<'_>) -> Option<i64> {
    let (tag, text) = fields.next()?;
    let digits = text.strip_suffix(b"Z").filter(|text| text.iter().all(u8::is_ascii_digit))?;
    let digits = str::from_utf8(digits).ok()?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let field = |place: usize| rest.get(2 * place..2 * place + 2)?.parse::<i8>().ok();
    let fields = (field(0)?, field(1)?, field(2)?, field(3)?, field(4)?);
    let (month, day, hour, minute, second) = fields;
    let time = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

#[cfg(test)]
mod tests;
