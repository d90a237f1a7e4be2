//! Ids of reservations.
//!
//! An id describes the whole reservation: its limits, their keys and its TTL. So every instance can
//! settle what another one reserved, after rules have changed, too, and nothing but the units
//! themselves is kept in the store.
//!
//! The store knows the reservation by the hash of that description. A description that was changed
//! or made up is that of another reservation, which does not exist: an id needs no signature, and
//! instances need no common secret. For that, four things must hold:
//!
//! - A verb that names a reservation changes nothing in the store if there is no such reservation.
//! - It never raises the rate at which a limit's units return, even if there is one: a hash of 64
//!   bits can be made to collide by a client who chooses request ids.
//! - An id names only keys of rules, and a bounded number of them.
//! - Without the store, nothing is taken on the word of an id alone (`InForce::by_rule`).

mod codec;

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use headgate::{FailMode, KeySpace, LeaseId, Limit, Timestamp};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use uuid::Uuid;

use crate::{
    Attributes, CompiledRule, Level, LimitSource, RateLimitRule, RuleId, Scope, Snapshot, compiled,
};

/// The id of a reservation, and what it describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationId {
    /// Makes it different from all others.
    nonce: [u8; 16],
    ttl: Duration,
    /// Number of checks.
    checks: u8,
    limits: Vec<ReservedLimit>,
    lease: LeaseId,
    text: String,
}

/// A limit under which units are reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedLimit {
    /// Bit n is set if check n counts against it.
    checks: u16,
    /// The rule and the time of its last change, so that a retry after a change is another
    /// reservation; `None` for the default rule.
    rule: Option<(RuleId, Timestamp)>,
    fail_mode: FailMode,
    prefix: Box<str>,
    subject: Box<str>,
    suffix: Box<str>,
    window_seconds: u32,
    /// The limit when the reservation was made.
    limit: Limit,
}

/// What applies to a limit of a reservation now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InForce<'a> {
    pub(crate) limit: &'a Limit,
    pub(crate) fail_mode: FailMode,
    /// `true` if both are those of an enabled rule. Otherwise they are only what the id says, which
    /// may be made up.
    pub(crate) by_rule: bool,
}

/// Text that is not the id of a reservation.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("not the id of a reservation")]
pub struct ReservationIdError;

/// Error for a reservation that needs an id of more than [`ReservationId::MAX_BYTES`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "too many limits with long identifiers: the reservation's id would have {0} bytes, of at most {max}",
    max = ReservationId::MAX_BYTES
)]
pub struct ReservationIdTooLong(pub usize);

// === impl ReservationId ===

impl ReservationId {
    pub(crate) const PREFIX: &str = "rres_";

    /// Maximum length in bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Maximum number of checks.
    pub const MAX_CHECKS: usize = 16;

    /// Maximum number of limits: as many as fit with their rules.
    pub(crate) const MAX_LIMITS: usize = 96;

    /// TTL of a reservation that names none.
    pub const DEFAULT_TTL: Duration = Duration::from_secs(30);

    /// Minimum TTL.
    pub const MIN_TTL: Duration = Duration::from_secs(1);

    /// Maximum TTL.
    pub const MAX_TTL: Duration = headgate::Lease::MAX_DURATION;

    /// Describes a reservation. The same description with the same request id has the same id; one
    /// without a request id never occurs again.
    pub(crate) fn new(
        request_id: Option<&str>,
        ttl: Duration,
        checks: usize,
        limits: Vec<ReservedLimit>,
    ) -> Result<Self, ReservationIdTooLong> {
        let nonce = request_id.map_or_else(|| Uuid::new_v4().into_bytes(), derived);
        let checks = u8::try_from(checks).unwrap_or(u8::MAX);
        let body = codec::encode(&nonce, ttl, checks, &limits);
        let lease = lease(&body);
        let bytes = [&lease.get().to_be_bytes()[..], &body].concat();
        let text = format!("{}{}", Self::PREFIX, URL_SAFE_NO_PAD.encode(bytes));
        if text.len() > Self::MAX_BYTES {
            return Err(ReservationIdTooLong(text.len()));
        }
        Ok(Self { nonce, ttl, checks, limits, lease, text })
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the time after which it expires, unless it is used.
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns the number of checks.
    pub const fn checks(&self) -> usize {
        self.checks as usize
    }

    /// Returns the limits under which units are reserved; none if no rule limits the checks.
    pub fn limits(&self) -> &[ReservedLimit] {
        &self.limits
    }

    /// Returns its name in the store.
    pub(crate) const fn lease(&self) -> LeaseId {
        self.lease
    }
}

impl FromStr for ReservationId {
    type Err = ReservationIdError;

    fn from_str(text: &str) -> Result<Self, ReservationIdError> {
        let encoded = text.strip_prefix(Self::PREFIX).ok_or(ReservationIdError)?;
        if text.len() > Self::MAX_BYTES {
            return Err(ReservationIdError);
        }
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| ReservationIdError)?;
        let (named, body) = bytes.split_first_chunk::<8>().ok_or(ReservationIdError)?;
        let lease = lease(body);
        if lease.get().to_be_bytes() != *named {
            return Err(ReservationIdError);
        }
        let (nonce, ttl, checks, limits) = codec::decode(body).ok_or(ReservationIdError)?;
        Ok(Self { nonce, ttl, checks, limits, lease, text: text.to_owned() })
    }
}

impl fmt::Display for ReservationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// === impl ReservedLimit ===

impl ReservedLimit {
    pub(crate) fn new(
        rule: &CompiledRule,
        space: &KeySpace<'_>,
        subject: &str,
        checks: u16,
    ) -> Self {
        let [prefix, suffix] = space.parts();
        Self {
            checks,
            rule: rule.rule().map(|rule| (rule.id, rule.updated_at)),
            fail_mode: rule.fail_mode(),
            prefix: prefix.into(),
            subject: subject.into(),
            suffix: suffix.into(),
            window_seconds: rule.window_seconds(),
            limit: rule.limit().clone(),
        }
    }

    /// Returns `true` if the check at this index counts against it.
    pub const fn counts(&self, check: usize) -> bool {
        check < ReservationId::MAX_CHECKS && self.checks >> check & 1 == 1
    }

    /// Returns `true` if it holds a place of a concurrency limit.
    pub(crate) const fn holds_places(&self) -> bool {
        self.limit.places().is_some()
    }

    /// Returns the window, which is the longest lease of a concurrency limit.
    pub(crate) const fn window(&self) -> Duration {
        Duration::from_secs(self.window_seconds as u64)
    }

    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }

    pub(crate) const fn space(&self) -> KeySpace<'_> {
        KeySpace::new(&self.prefix, &self.suffix)
    }

    /// Returns the limit and the failure mode in force: those of the rule, if it still counts under
    /// the same key, whatever the id says. Otherwise those of the id, as for a rule that was deleted.
    pub(crate) fn in_force<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        now: impl Fn() -> Timestamp,
    ) -> InForce<'a> {
        let rule = self.rule_in_force(snapshot);
        let limit = rule.and_then(|rule| self.limit_by(rule, snapshot, now));
        InForce {
            limit: limit.unwrap_or(&self.limit),
            fail_mode: rule.map_or(self.fail_mode, |rule| rule.fail_mode()),
            by_rule: limit.is_some() && rule.is_some_and(|rule| rule.is_enabled()),
        }
    }

    /// Returns the rule that the id names, if it counts this subject under the same key.
    fn rule_in_force<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Arc<CompiledRule>> {
        let scope = self.scope();
        let rule = match self.rule {
            Some((id, _)) => snapshot.rule(id)?,
            None => snapshot.default_rule(),
        };
        let matches = match (rule.rule(), scope) {
            // Its keys name the rule.
            (_, None) => true,
            (Some(RateLimitRule { spec, .. }), Some(scope)) => {
                spec.scope == scope && spec.identifier_pattern.matches(&self.subject)
            }
            (None, Some(scope)) => snapshot.matching(scope, &self.subject).level == Level::Default,
        };
        let same_key = rule.space(scope.unwrap_or(Scope::Attributes)).parts()
            == [&*self.prefix, &*self.suffix];
        (matches && same_key).then_some(rule)
    }

    /// Returns the limit that a rule has for the subject; `None` if that depends on attributes of
    /// the check that are not known any more.
    fn limit_by<'a>(
        &'a self,
        rule: &'a Arc<CompiledRule>,
        snapshot: &'a Snapshot,
        now: impl Fn() -> Timestamp,
    ) -> Option<&'a Limit> {
        let attributes = self.attributes(rule);
        let is_known = |name: &str| attributes.get(name).is_some();
        let mut shapes = rule.id().into_iter().flat_map(|id| snapshot.override_shapes(id));
        if !shapes.all(|names| names.iter().all(|name| is_known(name))) {
            return None;
        }
        let found = snapshot.with_limit_for(rule, &attributes, now);
        if !rule.is_by_plan() || matches!(found.source(), LimitSource::Override(_)) {
            return Some(found.limit());
        }
        // The plan is not known, but the rule must have it.
        rule.has_limit(&self.limit).then_some(&self.limit)
    }

    /// Returns the scope of the subject; `None` for a rule over attributes.
    fn scope(&self) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.key_prefix() == &*self.prefix)
    }

    /// Returns the attribute of the check whose value the subject is, if there is one.
    fn attributes<'a>(&'a self, rule: &'a CompiledRule) -> Attributes<'a> {
        let name = match (self.scope(), rule.selector()) {
            (Some(scope), _) => Some(scope.name()),
            (None, Some(selector)) => selector.per_of(&self.subject),
            (None, None) => None,
        };
        let mut attributes = Attributes::default();
        if let Some(name) = name {
            // Cannot fail: a subject is shorter than an attribute may be.
            let _ = attributes.insert(name, &*self.subject);
        }
        attributes
    }
}

/// The name of a description in the store.
fn lease(body: &[u8]) -> LeaseId {
    let hash = Sha256::digest(body);
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    LeaseId::from(u64::from_be_bytes(first))
}

/// The nonce of a request id.
fn derived(request_id: &str) -> [u8; 16] {
    let hash = Sha256::digest(request_id.as_bytes());
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&hash[..16]);
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(subject: &str) -> ReservedLimit {
        let limit = Limit::token_bucket(100, Duration::from_secs(60)).unwrap();
        ReservedLimit {
            checks: 0b101,
            rule: Some((RuleId::random(), Timestamp::from_micros(1_771_840_800_000_001))),
            fail_mode: FailMode::Local,
            prefix: "ratelimit:user:".into(),
            subject: subject.into(),
            suffix: ":60".into(),
            window_seconds: 60,
            limit: limit.with_burst(250).unwrap(),
        }
    }

    fn id(request_id: Option<&str>, limits: Vec<ReservedLimit>) -> ReservationId {
        ReservationId::new(request_id, Duration::from_secs(30), 3, limits).unwrap()
    }

    #[test]
    fn an_id_describes_its_reservation() {
        let window = Duration::from_secs(3600);
        let others = [
            Limit::sliding_window(7, window),
            Limit::sliding_window_counter(u64::from(u32::MAX), window),
            Limit::fixed_window(1, window),
            Limit::leaky_bucket(3, window),
        ];
        let others = others.map(|limit| {
            let limit = limit.unwrap();
            let suffix = compiled::key_suffix(3600, limit.algorithm()).into();
            let reserved = self::limit("ünï");
            let (rule, _) = reserved.rule.unwrap();
            let prefix = format!("ratelimit:rule:{rule}:tenant,path:").into();
            ReservedLimit { prefix, suffix, limit, window_seconds: 3600, ..reserved }
        });
        let default = ReservedLimit { rule: None, ..limit("u1") };
        for limits in [vec![], vec![limit("u1")], vec![default], others.to_vec()] {
            let id = id(None, limits);
            assert_eq!(id.as_str().parse(), Ok(id.clone()));
            assert_eq!((id.ttl(), id.checks()), (Duration::from_secs(30), 3));
        }
        let limit = limit("u1");
        assert_eq!([0, 1, 2, 3, 99].map(|i| limit.counts(i)), [true, false, true, false, false]);
    }

    #[test]
    fn the_same_request_id_has_the_same_id() {
        let limits = vec![limit("u1")];
        assert_eq!(id(Some("r1"), limits.clone()), id(Some("r1"), limits.clone()));
        assert_ne!(id(Some("r1"), limits.clone()).lease(), id(Some("r2"), limits.clone()).lease());
        assert_ne!(id(None, limits.clone()).lease(), id(None, limits).lease());
        assert_ne!(id(Some("r1"), vec![limit("u2")]).lease(), id(Some("r1"), vec![]).lease());
    }

    #[test]
    fn a_changed_id_is_of_no_reservation() {
        let text = id(None, vec![limit("u1")]).to_string();
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(changed.parse::<ReservationId>(), Err(ReservationIdError), "{at}");
            assert!(text[..at].parse::<ReservationId>().is_err());
        }
        // With a valid hash, too.
        let body = codec::encode(&[0; 16], Duration::from_secs(30), 1, &[limit("u1")]);
        let without_limits = codec::encode(&[0; 16], Duration::from_secs(30), 1, &[]).len();
        for end in (0..body.len()).filter(|end| *end != without_limits) {
            let cut = &body[..end];
            let bytes = [&lease(cut).get().to_be_bytes()[..], cut].concat();
            let text = format!("{}{}", ReservationId::PREFIX, URL_SAFE_NO_PAD.encode(bytes));
            assert!(text.parse::<ReservationId>().is_err(), "{end}");
        }
    }

    #[test]
    fn an_id_names_only_keys_of_its_rules() {
        let reserved = limit("u1");
        let (rule, _) = reserved.rule.unwrap();
        let other = RuleId::random();
        let invalid = [
            String::new(),
            "ratelimit:user:".to_owned() + "{u1}:",
            "ratelimit:rule:".to_owned(),
            format!("ratelimit:rule:{other}:path:"),
            format!("ratelimit:rule:{rule}"),
            format!("ratelimit:rule:{rule}:a b:"),
            format!("ratelimit:rule:{rule}:{{x}}:"),
            format!("ratelimit:rule:{rule}:a,:"),
            "quota:".to_owned(),
        ];
        for prefix in invalid {
            let made_up = ReservedLimit { prefix: prefix.as_str().into(), ..reserved.clone() };
            let text = id(None, vec![made_up]).to_string();
            assert_eq!(text.parse::<ReservationId>(), Err(ReservationIdError), "{prefix:?}");
        }
        let prefix: Box<str> = format!("ratelimit:rule:{rule}:path:").into();
        let anonymous = ReservedLimit { rule: None, prefix, ..reserved };
        assert!(id(None, vec![anonymous]).as_str().parse::<ReservationId>().is_err());
    }

    #[test]
    fn ids_are_bounded() {
        let short = |count| {
            let default = ReservedLimit { rule: None, ..limit("u") };
            id(None, vec![default; count]).as_str().parse::<ReservationId>().is_ok()
        };
        assert!(short(ReservationId::MAX_LIMITS));
        assert!(!short(ReservationId::MAX_LIMITS + 1));

        let limits = vec![limit(&"x".repeat(512)); 8];
        let long = ReservationId::new(None, Duration::from_secs(30), 8, limits).unwrap_err();
        assert!(long.0 > ReservationId::MAX_BYTES);
    }
}
