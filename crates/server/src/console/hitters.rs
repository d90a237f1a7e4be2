//! Who is limited most, in a bounded memory: the space-saving algorithm of Metwally, Agrawal and
//! El Abbadi, in shards so that those who are denied at the same time seldom wait for each other.
//!
//! Only denials come here: whoever is admitted pays nothing.

use std::{
    hash::{BuildHasher, RandomState},
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use headgate::Timestamp;
use headgate_ratelimit::{CompiledRule, KeyedAlgorithm, RateLimitRule, Scope};

const SHARDS: usize = 8;

/// How many subjects each shard tells apart.
const PER_SHARD: usize = 32;

/// How long denials count: those of this stretch, and of the one before it.
const STRETCH: Duration = Duration::from_secs(5 * 60);

/// Counts those who are denied most often.
pub(crate) struct Hitters {
    hasher: RandomState,
    shards: [Mutex<Shard>; SHARDS],
}

/// Somebody who was denied, and by what.
#[derive(Clone, Copy)]
pub(crate) struct Limited<'a> {
    scope: &'static str,
    identifier: &'a str,
    by: By<'a>,
}

/// Somebody who is denied often.
#[derive(Clone, Debug)]
pub(crate) struct Hitter {
    /// What kind of subject; `key` where no rule is about it.
    pub(crate) scope: &'static str,
    pub(crate) identifier: String,
    /// The rule that denied it last, if one did.
    pub(crate) rule_id: Option<String>,
    /// The name of that rule, or of the algorithm.
    pub(crate) rule_name: String,
    /// How often, at most: memory is bounded.
    pub(crate) denied: u64,
    /// By how much that may be too much.
    pub(crate) error: u64,
    pub(crate) last_at: Timestamp,
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

// === impl Hitters ===

impl Hitters {
    pub(crate) fn new(now: Timestamp) -> Self {
        let shard = |_| Mutex::new(Shard { began: now, now: Vec::new(), before: Vec::new() });
        Self { hasher: RandomState::new(), shards: std::array::from_fn(shard) }
    }

    /// Counts a denial.
    pub(crate) fn note(&self, limited: Limited<'_>, at: Timestamp) {
        let hash = self.hasher.hash_one((limited.scope, limited.identifier));
        let shard = &self.shards[hash as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner).note(hash, limited, at);
    }

    /// At most `most` of those who were denied in the last minutes, the most often first.
    pub(crate) fn top(&self, most: usize, now: Timestamp) -> Vec<Hitter> {
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
    pub(crate) const fn by_rule(
        scope: Scope,
        identifier: &'a str,
        rule: &'a Arc<CompiledRule>,
    ) -> Self {
        Self { scope: scope.name(), identifier, by: By::Rule(rule) }
    }

    pub(crate) const fn by_key(key: &'a str, algorithm: KeyedAlgorithm) -> Self {
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
        // The one with the fewest makes room, and leaves its count behind as the error.
        if let Some(least) = self.now.iter_mut().min_by_key(|entry| entry.count) {
            (least.hash, least.scope) = (hash, limited.scope);
            least.identifier.clear();
            least.identifier.push_str(limited.identifier);
            least.error = least.count;
            least.count += 1;
            least.decided(limited, at);
        }
    }

    /// Begins a new stretch when it is time to.
    fn turn(&mut self, now: Timestamp) {
        let elapsed = Duration::from_micros(now.since(self.began));
        if elapsed < STRETCH {
            return;
        }
        self.before = mem::take(&mut self.now);
        if elapsed >= 2 * STRETCH {
            self.before.clear();
        }
        self.began = now;
    }

    fn all(&self) -> Vec<Hitter> {
        let mut all: Vec<Hitter> = self.now.iter().map(Hitter::from).collect();
        for entry in &self.before {
            let same = |hitter: &&mut Hitter| {
                hitter.scope == entry.scope && hitter.identifier == entry.identifier
            };
            match all.iter_mut().find(same) {
                Some(hitter) => {
                    hitter.denied += entry.count;
                    hitter.error += entry.error;
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

    /// Notes by whom it was denied last.
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

impl From<&Entry> for Hitter {
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

    fn deny(hitters: &Hitters, key: &str, at: Timestamp) {
        hitters.note(Limited::by_key(key, KeyedAlgorithm::TokenBucket), at);
    }

    #[test]
    fn the_most_denied_stay_among_many_others() {
        let hitters = Hitters::new(NOW);
        for round in 0..20_000 {
            deny(&hitters, &format!("flood-{round}"), NOW);
            if round % 10 == 0 {
                deny(&hitters, "heavy", NOW);
            }
        }
        let top = hitters.top(usize::MAX, NOW);
        assert_eq!(top.len(), SHARDS * PER_SHARD);
        let heavy = top.iter().find(|hitter| hitter.identifier == "heavy").unwrap();
        assert!(heavy.denied - heavy.error <= 2000 && heavy.denied >= 2000, "{heavy:?}");
    }

    #[test]
    fn denials_are_forgotten_after_two_stretches() {
        let hitters = Hitters::new(NOW);
        deny(&hitters, "early", NOW);
        deny(&hitters, "early", NOW + STRETCH);
        assert_eq!(hitters.top(9, NOW + STRETCH)[0].denied, 2);
        assert_eq!(hitters.top(9, NOW + 2 * STRETCH)[0].denied, 1);
        assert!(hitters.top(9, NOW + 4 * STRETCH).is_empty());
    }
}
