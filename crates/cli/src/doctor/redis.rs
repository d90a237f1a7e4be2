use std::time::Duration;

use headgate::{Batch, BatchLimiter, Check, Clock, Cost, Key, KeySpace, Limit};
use headgate_server::Config;
use headgate_store_redis::{Inspection, Memory, Persistence, RedisStore};

use super::{report::Finding, skew};

const AREA: &str = "redis";

/// Timeout of a connection and of a call: more than a decision has, because a slow Redis is another
/// finding than one that is down.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Oldest version that the tests run on.
const OLDEST: u32 = 6;

/// Prefixes of the server's keys beside those of quotas. An ACL must permit them.
const PREFIXES: [&str; 4] = ["ratelimit:", "rate_limiter:", "envoy:", "headgate:"];

/// Fraction of the memory above which there is a warning.
const NEARLY_FULL: f64 = 0.9;

pub(super) async fn check(config: &Config, clock: &dyn Clock) -> Vec<Finding> {
    let target = match config.redis.target() {
        Ok(Some(target)) => target.timeout(TIMEOUT).connect_timeout(TIMEOUT).connections(1),
        Ok(None) => return vec![Finding::ok(AREA, "not configured; counters are in memory")],
        Err(problem) => return vec![Finding::error(AREA, problem.to_string(), "correct the key")],
    };
    let store = RedisStore::connect(target);
    let servers = store.inspect(clock).await;
    let is_up = servers.iter().all(|server| server.error.is_none());
    let mut findings: Vec<Finding> = servers.into_iter().flat_map(server).collect();
    if is_up {
        findings.extend(permissions(store, config.redis.key_prefix.as_str()).await);
    }
    findings
}

/// Findings about one server.
fn server(server: Inspection) -> Vec<Finding> {
    let Inspection { name, error, memory, version, persistence, clock_ahead, .. } = server;
    if let Some(error) = error {
        return vec![Finding::error(AREA, format!("{name}: {error}"), advice_for(&error))];
    }
    let shown = version.as_deref().map_or(String::new(), |version| format!(" (Redis {version})"));
    let mut findings = vec![Finding::ok(AREA, format!("{name} answers{shown}"))];
    findings.extend(version.as_deref().and_then(|version| too_old(&name, version)));
    match memory {
        Some(memory) => findings.extend(memory_findings(&name, &memory)),
        None => findings.push(Finding::warning(
            AREA,
            format!("{name} does not tell its memory: INFO and CONFIG are forbidden"),
            "permit INFO (ACL SETUSER ... +info), so that the server can warn of a full Redis",
        )),
    }
    findings.extend(persistence.and_then(|persistence| persistence_finding(&name, persistence)));
    findings.extend(skew(AREA, &name, clock_ahead));
    findings
}

fn advice_for(error: &str) -> &'static str {
    if ["WRONGPASS", "NOAUTH", "AUTH"].iter().any(|code| error.contains(code)) {
        "check user and password in redis.url or redis.password"
    } else if error.contains("TLS") || error.contains("rediss") {
        "use rediss:// for TLS, and check redis.ca, redis.cert and redis.key"
    } else {
        "check redis.url, that Redis runs there, and that the network lets this machine reach it"
    }
}

fn too_old(name: &str, version: &str) -> Option<Finding> {
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major < OLDEST).then(|| {
        let message = format!("{name} is Redis {version}, which is not tested");
        Finding::warning(AREA, message, format!("upgrade to Redis {OLDEST} or newer, or Valkey"))
    })
}

fn memory_findings(name: &str, memory: &Memory) -> Vec<Finding> {
    let mut findings = Vec::new();
    if memory.evicts_counters() {
        findings.push(Finding::warning(
            AREA,
            format!(
                "{name} evicts counters when its memory is full, which lifts limits \
                 (maxmemory-policy {})",
                memory.policy
            ),
            "set maxmemory-policy to noeviction or volatile-ttl",
        ));
    }
    if memory.max == 0 {
        findings.push(Finding::warning(
            AREA,
            format!("{name} has no memory limit (maxmemory 0): it grows until the system kills it"),
            "set maxmemory to less than the memory of its machine",
        ));
    } else if memory.used_ratio() > NEARLY_FULL {
        let percent = memory.used_ratio() * 100.0;
        findings.push(Finding::warning(
            AREA,
            format!("{name} uses {percent:.0} % of its memory"),
            "raise maxmemory, or bound new subjects with redis.max_new_subjects_per_second",
        ));
    }
    findings
}

fn persistence_finding(name: &str, persistence: Persistence) -> Option<Finding> {
    persistence.failed.then(|| {
        let message = format!("{name} failed to write its last snapshot or log");
        let advice = "see its log and its disk; by default it refuses writes until a snapshot \
                      succeeds";
        Finding::error(AREA, message, advice)
    })
}

/// Takes a unit of a key of each kind, and gives it back.
async fn permissions(store: RedisStore, quotas: &str) -> Vec<Finding> {
    let limiter = BatchLimiter::new(store);
    let Ok(limit) = Limit::token_bucket(1_000_000, Duration::from_secs(1)) else {
        return Vec::new();
    };
    let mut refused = Vec::new();
    for prefix in PREFIXES.into_iter().chain([quotas]) {
        let space = KeySpace::new(prefix, "");
        let Ok(key) = Key::new("doctor") else { continue };
        let Ok(check) = Check::new(key.within(&space), &limit, Cost::ONE) else { continue };
        let batch = Batch::from(check);
        let tried = match limiter.check(&batch).await {
            Ok(_) => limiter.reset(&batch).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = tried {
            refused.push(format!("{prefix}*: {error}"));
        }
    }
    if refused.is_empty() {
        return vec![Finding::ok(AREA, "scripts and keys are permitted")];
    }
    let advice = "permit the scripts, their commands and these keys, for example ACL SETUSER \
                  headgate on >... ~ratelimit:* ~rate_limiter:* ~quota:* ~envoy:* ~headgate:* \
                  +@all -@admin -@dangerous +info";
    let message = format!("Redis refuses checks of keys: {}", refused.join("; "));
    vec![Finding::error(AREA, message, advice)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_before_the_oldest_tested_one_are_reported() {
        assert!(too_old("r", "5.0.14").is_some());
        assert!(too_old("r", "6.0.16").is_none() && too_old("r", "7.2.4").is_none());
        assert!(too_old("r", "unknown").is_none());
    }

    #[test]
    fn advice_depends_on_the_error() {
        let wrong = "cannot connect to Redis at 127.0.0.1:1: refused: WRONGPASS invalid username";
        assert!(advice_for(wrong).contains("password"));
        assert!(advice_for("cannot connect: Connection refused").contains("network"));
    }
}
