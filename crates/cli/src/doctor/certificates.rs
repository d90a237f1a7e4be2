//! Expiry of the certificates that the configuration names.

use std::{fs, path::Path};

use headgate::Clock;
use headgate_config::Secret;
use headgate_server::Config;
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use rustls::pki_types::{CertificateDer, pem::PemObject};

use super::report::Finding;

const AREA: &str = "certificates";

/// Time before the expiry from which there is a warning, in days.
const SOON: i64 = 30;

const SECONDS_PER_DAY: i64 = 86_400;

/// A certificate of the configuration: the key that names it, and its file or text in PEM.
struct Named<'a> {
    key: &'a str,
    pem: Pem<'a>,
}

enum Pem<'a> {
    File(&'a Path),
    Text(&'a Secret),
}

pub(super) fn check(config: &Config, clock: &dyn Clock) -> Vec<Finding> {
    let now = (clock.now().as_micros() / 1_000_000).cast_signed();
    named(config).iter().flat_map(|named| named.check(now)).collect()
}

fn named(config: &Config) -> Vec<Named<'_>> {
    let (redis, xds) = (&config.redis, &config.envoy.xds);
    let (database, trace) = (&config.database, &config.observability.trace);
    let metrics = &config.observability.metrics.otlp;
    let texts = [("redis.ca", &redis.ca), ("redis.cert", &redis.cert)];
    let files = [
        ("auth.ca_file", &config.auth.ca_file),
        ("database.ca_file", &database.ca_file),
        ("database.cert_file", &database.cert_file),
        ("observability.trace.ca_file", &trace.ca_file),
        ("observability.trace.cert_file", &trace.cert_file),
        ("observability.metrics.otlp.ca_file", &metrics.ca_file),
        ("observability.metrics.otlp.cert_file", &metrics.cert_file),
        ("kafka.ca_file", &config.kafka.ca_file),
        ("kafka.cert_file", &config.kafka.cert_file),
        ("envoy.xds.ca_file", &xds.ca_file),
        ("envoy.xds.cert_file", &xds.cert_file),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key, Pem::Text(text.as_ref()?))));
    let files = files.into_iter().filter_map(|(key, file)| Some((key, Pem::File(file.as_ref()?))));
    let database = database.url.as_ref().map(Secret::expose).unwrap_or_default();
    let grpc_tls = config.server.grpc_tls.as_ref();
    let sections = [
        ("server.tls.certificates", Some(&config.server.tls)),
        ("server.grpc_tls.certificates", grpc_tls),
    ];
    let sections = sections.into_iter().filter_map(|(key, tls)| Some((key, tls?)));
    let served = sections.flat_map(|(key, tls)| {
        tls.certificates.iter().map(move |pair| (key, Pem::File(&pair.cert_file)))
    });
    texts
        .chain(files)
        .chain(served)
        .chain(["sslrootcert", "sslcert"].into_iter().filter_map(|name| {
            let file = url_parameter(database, name)?;
            Some((name, Pem::File(Path::new(file))))
        }))
        .map(|(key, pem)| Named { key, pem })
        .collect()
}

/// Returns a parameter of the database's URL, which names a file.
fn url_parameter<'a>(url: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = url.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, file)| file)
}

impl Named<'_> {
    fn check(&self, now: i64) -> Vec<Finding> {
        let key = self.key;
        let pem = match self.pem {
            Pem::Text(text) => text.expose().as_bytes().to_vec(),
            Pem::File(path) => match fs::read(path) {
                Ok(pem) => pem,
                Err(error) => {
                    let message = format!("{key}: cannot read {}: {error}", path.display());
                    let advice = "correct the path, or make the file readable for this user";
                    return vec![Finding::error(AREA, message, advice)];
                }
            },
        };
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let validity = certificates.ok().and_then(|certificates| {
            let all: Option<Vec<_>> = certificates.iter().map(|der| validity(der)).collect();
            all.filter(|all| !all.is_empty())
        });
        vec![validity.map_or_else(
            || {
                let message = format!("{key}: no certificate in PEM");
                Finding::error(AREA, message, "name a file with -----BEGIN CERTIFICATE-----")
            },
            |all| expiry(key, &all, now),
        )]
    }
}

/// Reports the certificate of a chain or bundle that expires first.
fn expiry(key: &str, validity: &[(i64, i64)], now: i64) -> Finding {
    let begins = validity.iter().map(|(begins, _)| *begins).max().unwrap_or_default();
    let ends = validity.iter().map(|(_, ends)| *ends).min().unwrap_or_default();
    let date = |second| {
        Timestamp::from_second(second).map_or_else(|_| String::new(), |time| time.to_string())
    };
    let days = (ends - now) / SECONDS_PER_DAY;
    if ends < now {
        let message = format!("{key}: expired at {}", date(ends));
        Finding::error(AREA, message, "renew it, or check this machine's clock")
    } else if begins > now {
        let message = format!("{key}: valid only from {}", date(begins));
        Finding::error(AREA, message, "check this machine's clock")
    } else if days < SOON {
        let message = format!("{key}: expires in {days} days, at {}", date(ends));
        Finding::warning(AREA, message, "renew it")
    } else {
        Finding::ok(AREA, format!("{key}: valid for {days} days"))
    }
}

/// Returns the first and last second of a certificate's validity, since 1970.
fn validity(der: &[u8]) -> Option<(i64, i64)> {
    const VERSION: u8 = 0xa0;
    let (_, certificate, _) = element(der)?;
    let (_, fields, _) = element(certificate)?;
    let (tag, _, rest) = element(fields)?;
    // The version is optional; then come serial number, algorithm and issuer.
    let rest = if tag == VERSION { element(rest)?.2 } else { rest };
    let (.., rest) = element(rest)?;
    let (.., rest) = element(rest)?;
    let (_, validity, _) = element(rest)?;
    let (begins, rest) = time(validity)?;
    Some((begins, time(rest)?.0))
}

/// Splits DER into the tag and contents of its first element, and the rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// Reads a `UTCTime` or `GeneralizedTime`. Returns it with the rest.
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    const UTC_TIME: u8 = 0x17;
    let (tag, text, rest) = element(der)?;
    let text = str::from_utf8(text).ok()?;
    let text = match tag {
        UTC_TIME if text < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        _ => text.to_owned(),
    };
    let time = DateTime::strptime("%Y%m%d%H%M%SZ", text).ok()?;
    Some((time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::Level;

    const EXPIRED: &str = include_str!("../../tests/cli/doctor/expired.pem");

    fn expired() -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(EXPIRED.as_bytes()).unwrap()
    }

    #[test]
    fn reads_the_validity() {
        let begins = "2020-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second();
        let (from, until) = validity(&expired()).unwrap();
        assert_eq!(until - from, 365 * SECONDS_PER_DAY);
        assert!((begins..begins + 60).contains(&from), "{from}");
    }

    #[test]
    fn cut_or_foreign_bytes_are_no_certificate() {
        let der = expired();
        for length in 0..der.len().min(160) {
            assert_eq!(validity(&der[..length]), None, "{length}");
        }
        assert_eq!(validity(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(validity(b"text"), None);
    }

    #[test]
    fn the_level_depends_on_the_days_left() {
        let day = SECONDS_PER_DAY;
        let level = |now| expiry("k", &[(0, 100 * day), (day, 200 * day)], now).level;
        assert_eq!(level(0), Level::Error, "not valid yet");
        assert_eq!(level(2 * day), Level::Ok);
        assert_eq!(level(71 * day), Level::Warning);
        assert_eq!(level(101 * day), Level::Error);
    }
}
