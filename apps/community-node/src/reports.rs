//! Reports of users: entries of the database's audit log, kept for a time.

use std::time::Duration;

use headgate::Timestamp;
use headgate_ratelimit::RepositoryError;
use tokio::time;
use tracing::warn;

use crate::Node;

/// Audit action of a report.
pub(crate) const ACTION: &str = "report.submit";

/// Retention of reports, that of the events of quotas.
const KEPT_DAYS: u64 = 180;

/// Interval of housekeeping.
const HOUR: Duration = Duration::from_secs(3_600);

/// Deletes old reports at intervals; never returns. Nodes may do it concurrently.
pub(crate) async fn run_housekeeping(node: &Node) {
    let mut hours = time::interval(HOUR);
    loop {
        hours.tick().await;
        if let Err(error) = delete_old(node).await {
            warn!(%error, "failed to delete old reports; retrying in an hour");
        }
    }
}

/// Deletes old reports, and returns their number. Other entries of the audit log stay.
async fn delete_old(node: &Node) -> Result<u64, RepositoryError> {
    let now = node.clock.now().as_micros();
    let before = Timestamp::from_micros(now.saturating_sub(KEPT_DAYS * 86_400_000_000));
    node.database.prune_action(ACTION, before).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headgate::ManualClock;
    use headgate_ratelimit::{AuditEntry, AuditFilter, AuditLog as _, Author, Page};

    use super::*;
    use crate::{App, Config};

    const DAY: u64 = 86_400_000_000;

    fn entry(action: &str, day: u64) -> AuditEntry {
        let at = Timestamp::from_micros(day * DAY);
        AuditEntry {
            id: 0,
            author: Author { actor: "ada".to_owned(), request_id: format!("{action}-{day}"), at },
            action: action.to_owned(),
            target: "pubkey:00".to_owned(),
            before: None,
            after: None,
            reason: Some("spam".to_owned()),
        }
    }

    #[tokio::test]
    async fn reports_are_deleted_after_180_days_and_other_entries_stay() {
        let data = tempfile::tempdir().unwrap();
        let file = format!("sqlite://{}/node.db", data.path().display());
        let variables = [("CN_DATABASE_URL".to_owned(), file)];
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(20_180 * DAY)));
        let app = App::build(Config::load(variables).unwrap(), clock.clone()).await.unwrap();
        let node = Arc::clone(app.node());
        // The node waits for it for two seconds, and a busy machine may take longer.
        node.database.migrate().await.unwrap();
        for (action, day) in [(ACTION, 19_999), (ACTION, 20_000), ("ratelimit.reset", 19_999)] {
            node.database.record(&entry(action, day)).await.unwrap();
        }
        let housekeeping = tokio::spawn({
            let node = Arc::clone(&node);
            async move { run_housekeeping(&node).await }
        });
        let left = async {
            loop {
                let entries = node.database.entries(&AuditFilter::default(), Page::DEFAULT).await;
                let entries = entries.unwrap().items;
                if entries.len() < 3 {
                    break entries;
                }
                time::sleep(Duration::from_millis(5)).await;
            }
        };
        let left = time::timeout(Duration::from_secs(120), left).await.expect("a deletion");
        let left: Vec<_> = left.iter().map(|entry| &*entry.author.request_id).collect();
        assert_eq!(left, ["ratelimit.reset-19999", "report.submit-20000"]);
        housekeeping.abort();
        clock.set(Timestamp::from_micros(20_181 * DAY));
        assert_eq!(delete_old(&node).await.unwrap(), 1);
    }
}
