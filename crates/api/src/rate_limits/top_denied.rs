//! The subjects denied most often, in bounded memory: the space-saving algorithm of Metwally,
//! Agrawal and El Abbadi, sharded to reduce lock contention.
//!
//! Only denials are recorded: admitted requests cost nothing.

use std::{
    hash::{BuildHasher, RandomState},
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use headgate::Timestamp;
use headgate_ratelimit::{CompiledRule, KeyedAlgorithm, RateLimitRule, Scope};

const SHARDS: usize = 8;

/// Subjects that each shard tracks.
const PER_SHARD: usize = 32;

/// Length of a counting period; denials of the current and the last one count.
const PERIOD: Duration = Duration::from_secs(5 * 60);

/// Tracks the subjects denied most often.
pub struct TopDenied {
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

/// A denied subject, with the rule or algorithm that denied it.
#[derive(Clone, Copy)]
pub struct Limited<'a> {
    scope: &'static str,
    identifier: &'a str,
    by: By<'a>,
}

/// A subject denied often.
#[derive(Clone, Debug)]
pub struct DeniedSubject {
    /// Kind of subject; `key` for checks by key.
    pub scope: &'static str,
    /// The subject.
    pub identifier: String,
    /// The rule that denied it last, if one did.
    pub rule_id: Option<String>,
    /// The name of that rule, or of the algorithm.
    pub rule_name: String,
    /// Denials, possibly overestimated: memory is bounded.
    pub denied: u64,
    /// Maximum overestimate of `denied`.
    pub error: u64,
    /// The last denial.
    pub last_at: Timestamp,
}

#[derive(Clone, Copy)]
enum By<'a> {
    Rule(&'a Arc<CompiledRule>),
    Algorithm(KeyedAlgorithm),
}

struct Shard {
    began: Timestamp,
    now: Vec<Entry>,
    before: Vec<Entry>,
}

struct Entry {
    hash: u64,
    scope: &'static str,
    identifier: String,
    rule: Option<Arc<CompiledRule>>,
    algorithm: &'static str,
    count: u64,
    error: u64,
    last_at: Timestamp,
}

// === impl TopDenied ===

impl TopDenied {
    /// Creates an empty list.
    pub fn new(now: Timestamp) -> Self {
        let shard = |_| Mutex::new(Shard { began: now, now: Vec::new(), before: Vec::new() });
        Self { hasher: RandomState::new(), shards: std::array::from_fn(shard) }
    }

    /// Counts a denial.
    pub fn note(&self, limited: Limited<'_>, at: Timestamp) {
        let hash = self.hasher.hash_one((limited.scope, limited.identifier));
        let shard = &self.shards[hash as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner).note(hash, limited, at);
    }

    /// Up to `most` subjects denied in the last minutes, most denied first.
    pub fn top(&self, most: usize, now: Timestamp) -> Vec<DeniedSubject> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.turn(now);
            all.extend(shard.all());
        }
        all.sort_by(|a, b| b.denied.cmp(&a.denied).then_with(|| a.identifier.cmp(&b.identifier)));
        all.truncate(most);
        all
    }
}

// === impl Limited ===

impl<'a> Limited<'a> {
    pub const fn by_rule(scope: Scope, identifier: &'a str, rule: &'a Arc<CompiledRule>) -> Self {
        Self { scope: scope.name(), identifier, by: By::Rule(rule) }
    }

    pub const fn by_attributes(
        scope: &'static str,
        subject: &'a str,
        rule: &'a Arc<CompiledRule>,
    ) -> Self {
        Self { scope, identifier: subject, by: By::Rule(rule) }
    }

    pub const fn by_key(key: &'a str, algorithm: KeyedAlgorithm) -> Self {
        Self { scope: "key", identifier: key, by: By::Algorithm(algorithm) }
    }
}

// === impl Shard ===

impl Shard {
    fn note(&mut self, hash: u64, limited: Limited<'_>, at: Timestamp) {
        self.turn(at);
        let known = self.now.iter_mut().find(|entry| entry.is(hash, limited));
        if let Some(entry) = known {
            entry.count += 1;
            return entry.decided(limited, at);
        }
        if self.now.len() < PER_SHARD {
            return self.now.push(Entry::new(hash, limited, at));
        }
        // Evict the subject with the fewest denials; its count becomes the maximum overestimate.
        if let Some(least) = self.now.iter_mut().min_by_key(|entry| entry.count) {
            (least.hash, least.scope) = (hash, limited.scope);
            least.identifier.clear();
            least.identifier.push_str(limited.identifier);
            least.error = least.count;
            least.count += 1;
            least.decided(limited, at);
        }
    }

    /// Begins a new period when the current one is over.
    fn turn(&mut self, now: Timestamp) {
        let elapsed = Duration::from_micros(now.since(self.began));
        if elapsed < PERIOD {
            return;
        }
        self.before = mem::take(&mut self.now);
        if elapsed >= 2 * PERIOD {
            self.before.clear();
        }
        self.began = now;
    }

    fn all(&self) -> Vec<DeniedSubject> {
        let mut all: Vec<DeniedSubject> = self.now.iter().map(DeniedSubject::from).collect();
        for entry in &self.before {
            let same = |subject: &&mut DeniedSubject| {
                subject.scope == entry.scope && subject.identifier == entry.identifier
            };
            match all.iter_mut().find(same) {
                Some(subject) => {
                    subject.denied += entry.count;
                    subject.error += entry.error;
                }
                None => all.push(entry.into()),
            }
        }
        all
    }
}

// === impl Entry ===

impl Entry {
    fn new(hash: u64, limited: Limited<'_>, at: Timestamp) -> Self {
        let (scope, identifier) = (limited.scope, limited.identifier.to_owned());
        let (rule, algorithm) = (None, "");
        let mut entry =
            Self { hash, scope, identifier, rule, algorithm, count: 1, error: 0, last_at: at };
        entry.decided(limited, at);
        entry
    }

    fn is(&self, hash: u64, limited: Limited<'_>) -> bool {
        self.hash == hash && self.scope == limited.scope && self.identifier == limited.identifier
    }

    /// Records what denied it last.
    fn decided(&mut self, limited: Limited<'_>, at: Timestamp) {
        self.last_at = self.last_at.max(at);
        match limited.by {
            By::Rule(rule) => {
                if !self.rule.as_ref().is_some_and(|known| Arc::ptr_eq(known, rule)) {
                    self.rule = Some(Arc::clone(rule));
                }
            }
            By::Algorithm(algorithm) => {
                self.rule = None;
                self.algorithm = algorithm.name();
            }
        }
    }
}

impl From<&Entry> for DeniedSubject {
    fn from(entry: &Entry) -> Self {
        let rule = entry.rule.as_ref().map(|compiled| compiled.rule());
        Self {
            scope: entry.scope,
            identifier: entry.identifier.clone(),
            rule_id: rule.flatten().map(|rule| rule.id.to_string()),
            rule_name: match rule {
                Some(Some(rule)) => RateLimitRule::display_name(rule),
                Some(None) => "default".to_owned(),
                None => entry.algorithm.to_owned(),
            },
            denied: entry.count,
            error: entry.error,
            last_at: entry.last_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn deny(top_denied: &TopDenied, key: &str, at: Timestamp) {
        top_denied.note(Limited::by_key(key, KeyedAlgorithm::TokenBucket), at);
    }

    #[test]
    fn keeps_the_most_denied_among_many_others() {
        let top_denied = TopDenied::new(NOW);
        for round in 0..20_000 {
            deny(&top_denied, &format!("flood-{round}"), NOW);
            if round % 10 == 0 {
                deny(&top_denied, "heavy", NOW);
            }
        }
        let top = top_denied.top(usize::MAX, NOW);
        assert_eq!(top.len(), SHARDS * PER_SHARD);
        let heavy = top.iter().find(|subject| subject.identifier == "heavy").unwrap();
        assert!(heavy.denied - heavy.error <= 2000 && heavy.denied >= 2000, "{heavy:?}");
    }

    #[test]
    fn forgets_denials_after_two_periods() {
        let top_denied = TopDenied::new(NOW);
        deny(&top_denied, "early", NOW);
        deny(&top_denied, "early", NOW + PERIOD);
        assert_eq!(top_denied.top(9, NOW + PERIOD)[0].denied, 2);
        assert_eq!(top_denied.top(9, NOW + 2 * PERIOD)[0].denied, 1);
        assert!(top_denied.top(9, NOW + 4 * PERIOD).is_empty());
    }
}
