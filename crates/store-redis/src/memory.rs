//! Memory use and eviction policy of a server.

use redis::{Cmd, Value, cmd};

use crate::{
    pool::{Pool, SendOptions},
    reply,
};

/// Memory use and eviction policy of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Bytes in use.
    pub used: u64,
    /// Maximum number of bytes; 0 if unlimited (`maxmemory`).
    pub max: u64,
    /// Eviction policy (`maxmemory-policy`).
    pub policy: String,
}

impl Memory {
    /// Returns `true` if Redis may evict counters that are in use, which lifts limits.
    ///
    /// Every key of this store has a TTL, so the `volatile-*` policies are no better than
    /// `allkeys-*`, except for `volatile-ttl`, which evicts the keys that expire next.
    pub fn evicts_counters(&self) -> bool {
        !matches!(self.policy.as_str(), "noeviction" | "volatile-ttl")
    }

    /// Fraction of the maximum in use; 0 without a maximum.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn used_ratio(&self) -> f64 {
        if self.max == 0 { 0.0 } else { self.used as f64 / self.max as f64 }
    }

    /// Loads it with `INFO`, or with `CONFIG` if an ACL forbids `INFO`.
    pub(crate) async fn load(pool: &Pool) -> Option<Self> {
        let info = send(pool, cmd("INFO").arg("memory")).await;
        if let Some(text) = info.as_ref().and_then(reply::word)
            && let Some(memory) = Self::from_info(&text)
        {
            return Some(memory);
        }
        let config = send(pool, cmd("CONFIG").arg("GET").arg("maxmemory-policy")).await?;
        let Value::Array(words) = config else { return None };
        let policy = words.get(1).and_then(reply::word)?;
        Some(Self { used: 0, max: 0, policy })
    }

    fn from_info(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map(str::trim)
        };
        Some(Self {
            used: field("used_memory")?.parse().ok()?,
            max: field("maxmemory").and_then(|max| max.parse().ok()).unwrap_or(0),
            policy: field("maxmemory_policy")?.to_owned(),
        })
    }

    /// Logs a warning about a policy that lifts limits, once per policy.
    pub(crate) fn warn_if_new(&self, server: &str, before: Option<&Self>) {
        let is_new = before.is_none_or(|before| before.policy != self.policy);
        if is_new && self.evicts_counters() {
            tracing::warn!(
                server,
                policy = self.policy,
                "Redis evicts counters when its memory is full, which lifts limits: set \
                 maxmemory-policy to noeviction or volatile-ttl"
            );
        }
    }
}

async fn send(pool: &Pool, command: &mut Cmd) -> Option<Value> {
    pool.send(command, 1, SendOptions::default()).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Memory\r\nused_memory:1048576\r\nused_memory_rss:9\r\nmaxmemory:2097152\r\n\
                        maxmemory_human:2.00M\r\nmaxmemory_policy:allkeys-lru\r\n";

    #[test]
    fn parses_the_reply_of_info() {
        let memory = Memory::from_info(INFO).unwrap();
        let policy = "allkeys-lru".to_owned();
        assert_eq!(memory, Memory { used: 1_048_576, max: 2_097_152, policy });
        assert!(Memory::from_info("# Server\r\n").is_none());
    }

    #[test]
    fn two_policies_do_not_evict_counters_in_use() {
        for policy in
            ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-random"]
        {
            let memory = Memory { used: 0, max: 0, policy: policy.to_owned() };
            assert!(memory.evicts_counters(), "{policy}");
        }
        for policy in ["noeviction", "volatile-ttl"] {
            let memory = Memory { used: 0, max: 0, policy: policy.to_owned() };
            assert!(!memory.evicts_counters(), "{policy}");
        }
    }
}
