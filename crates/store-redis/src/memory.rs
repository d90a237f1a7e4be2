//! What Redis says about its memory: how much there is, and what it throws away when that is used up.

use redis::{Cmd, Value, cmd};

use crate::{
    link::{Link, Manner},
    reply,
};

/// What Redis says about its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in use.
    pub used: u64,
    /// Bytes that it may use; 0 is no bound.
    pub max: u64,
    /// What it throws away when these are used up (`maxmemory-policy`).
    pub policy: String,
}

impl Memory {
    /// Whether Redis may throw away counters that still count, and so lift limits.
    ///
    /// Every key of ours has a time to live, so policies for keys that have one are no better than
    /// those for all; `volatile-ttl` takes those first that would soon be gone by themselves.
    pub fn evicts_counters(&self) -> bool {
        !matches!(self.policy.as_str(), "noeviction" | "volatile-ttl")
    }

    /// Share of the bound that is in use; 0 without a bound.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no bytes")]
    pub fn used_ratio(&self) -> f64 {
        if self.max == 0 { 0.0 } else { self.used as f64 / self.max as f64 }
    }

    /// Asks with `INFO`, or with `CONFIG` where an access list forbids that.
    pub(crate) async fn ask(link: &Link) -> Option<Self> {
        let info = send(link, cmd("INFO").arg("memory")).await;
        if let Some(text) = info.as_ref().and_then(reply::word)
            && let Some(memory) = Self::from_info(&text)
        {
            return Some(memory);
        }
        let config = send(link, cmd("CONFIG").arg("GET").arg("maxmemory-policy")).await?;
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

    /// Warns of a policy that lifts limits, once for each.
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

async fn send(link: &Link, command: &mut Cmd) -> Option<Value> {
    link.send(command, Manner::default()).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Memory\r\nused_memory:1048576\r\nused_memory_rss:9\r\nmaxmemory:2097152\r\n\
                        maxmemory_human:2.00M\r\nmaxmemory_policy:allkeys-lru\r\n";

    #[test]
    fn reads_what_info_says() {
        let memory = Memory::from_info(INFO).unwrap();
        let policy = "allkeys-lru".to_owned();
        assert_eq!(memory, Memory { used: 1_048_576, max: 2_097_152, policy });
        assert!(Memory::from_info("# Server\r\n").is_none());
    }

    #[test]
    fn only_two_policies_keep_counters_that_count() {
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
