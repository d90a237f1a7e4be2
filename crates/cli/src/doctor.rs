//! `headgate doctor`
//!
//! | module | checks |
//! |---|---|
//! | `configuration` | the file and the environment |
//! | `redis` | reachability, permissions, memory, version, persistence, clock |
//! | `database` | reachability, tables, privileges, writes, clock |
//! | `endpoints` | reachability of the other services: JWKS, Kafka, xDS, OTLP, webhooks |
//! | `listeners` | free ports |
//! | `machine` | data folder, admin token, disk space, open files |
//! | `certificates` | expiry of certificate files |
//! | `report` | findings, and how they are printed |

mod certificates;
mod configuration;
mod database;
mod endpoints;
mod listeners;
mod machine;
mod redis;
mod report;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use headgate::SystemClock;
use headgate_server::Config;
use tokio::{runtime::Runtime, time::timeout};

use self::report::{Finding, Report};
use crate::failure::Failure;

/// Check the configuration, the machine and every service that the server would use.
///
/// Run it on the machine, and as the user, that serve. Nothing is changed, except for a short-lived
/// key in Redis and one row of the database that are never read. Exits with 1 if there are errors.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Configuration file; the environment and the defaults apply without one, too.
    #[arg(long, env = "CONFIG_PATH", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// Exit with 1 if there are warnings, too.
    #[arg(long)]
    strict: bool,
}

/// Timeout of each check. They run concurrently.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Doctor {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let (config, mut findings) = configuration::check(self.config.as_deref());
        if let Some(config) = config {
            let runtime = Runtime::new()?;
            findings.extend(runtime.block_on(examine(&config)));
            // A check that timed out may still hold a blocking thread.
            runtime.shutdown_background();
        }
        let report = Report::new(findings);
        if self.json {
            report.print_json()?;
        } else {
            report.print()?;
        }
        Ok(if report.passes(self.strict) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Checks everything but the configuration itself.
async fn examine(config: &Config) -> Vec<Finding> {
    let clock = SystemClock::new();
    let (redis, database, endpoints, listeners) = tokio::join!(
        bounded("redis", redis::check(config, &clock)),
        bounded("database", database::check(config, &clock)),
        endpoints::check(config),
        bounded("listeners", listeners::check(config)),
    );
    let machine = machine::check(config);
    let certificates = certificates::check(config, &clock);
    [redis, database, endpoints, certificates, listeners, machine].concat()
}

/// Reports a check that takes too long.
async fn bounded(area: &'static str, check: impl Future<Output = Vec<Finding>>) -> Vec<Finding> {
    timeout(TIMEOUT, check).await.unwrap_or_else(|_| {
        let message = format!("no answer within {} s", TIMEOUT.as_secs());
        vec![Finding::error(area, message, "check the address and the network")]
    })
}

/// Describes a clock that is `ahead` microseconds of another one, if that matters.
fn skew(area: &'static str, name: &str, ahead: Option<i64>) -> Option<Finding> {
    /// Less than that is jitter of the network.
    const TOLERATED: i64 = 1_000_000;
    let ahead = ahead?;
    let seconds = ahead.unsigned_abs() as f64 / 1e6;
    (ahead.abs() > TOLERATED).then(|| {
        let side = if ahead > 0 { "ahead of" } else { "behind" };
        Finding::warning(
            area,
            format!("this machine's clock is {seconds:.1} s {side} the clock of {name}"),
            "synchronise both clocks, for example with chrony or systemd-timesyncd",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_of_more_than_a_second_is_a_warning() {
        assert_eq!(skew("redis", "r", None), None);
        assert_eq!(skew("redis", "r", Some(-900_000)), None);
        let behind = skew("redis", "r", Some(-3_600_000_000)).unwrap();
        assert_eq!(behind.message, "this machine's clock is 3600.0 s behind the clock of r");
        assert!(skew("redis", "r", Some(1_500_000)).unwrap().message.contains("1.5 s ahead of"));
    }
}
