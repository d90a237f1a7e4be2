//! Policies that nobody uses any more. Whoever signs in with a new key gets one, and keys cost nothing.

use headgate::Timestamp;
use headgate_quota::{
    Page, PolicyChange, PolicyFilter, QuotaPolicy, RepositoryError, SubjectType, usecase::ReadUsage,
};

use super::{DailyQuotas, NAME, author};

/// How long a policy is kept after its last use. It is made anew when it is needed.
const UNUSED_DAYS: u64 = 7;

/// How many pages of policies are looked through at a time.
const MAX_PAGES: u32 = 50;

/// Where the next look begins: policies are listed newest first, and looked at oldest first, so that
/// what is deleted moves none that is still to come.
#[derive(Debug, Default)]
pub(super) struct Cursor(Option<u32>);

// === impl DailyQuotas ===

impl DailyQuotas {
    /// Deletes some of our own policies that were not used for a week; says how many.
    pub(super) async fn delete_unused(&self, cursor: &mut Cursor) -> Result<u64, RepositoryError> {
        let now = self.quotas.now().as_micros();
        let before = Timestamp::from_micros(now.saturating_sub(UNUSED_DAYS * 86_400_000_000));
        let mut deleted = 0;
        let mut page = match cursor.0.take() {
            Some(page) => page,
            None => self.last_page().await?,
        };
        for _ in 0..MAX_PAGES {
            let Some(at) = whole(page) else { return Ok(deleted) };
            let listed = self.repository.list(&users(), at).await?;
            for policy in &listed.items {
                if self.is_unused(policy, before).await? {
                    deleted += u64::from(self.delete(policy).await?);
                }
            }
            // Those on earlier pages are newer still.
            if listed.items.iter().any(|policy| policy.created_at >= before) {
                return Ok(deleted);
            }
            page -= 1;
        }
        cursor.0 = Some(page);
        Ok(deleted)
    }

    async fn last_page(&self) -> Result<u32, RepositoryError> {
        let Some(first) = whole(1) else { return Ok(0) };
        let total = self.repository.list(&users(), first).await?.total;
        Ok(u32::try_from(total.div_ceil(u64::from(Page::MAX_SIZE))).unwrap_or(u32::MAX))
    }

    async fn is_unused(
        &self,
        policy: &QuotaPolicy,
        before: Timestamp,
    ) -> Result<bool, RepositoryError> {
        let Ok(latest) = Page::new(1, 1) else { return Ok(false) };
        // One with another name is somebody's own.
        if policy.spec.name != NAME || policy.updated_at >= before {
            return Ok(false);
        }
        match ReadUsage::new(&self.quotas).history(&policy.id, latest).await {
            Ok(history) => Ok(history.items.iter().all(|period| period.updated_at < before)),
            Err(RepositoryError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether it was us who deleted it.
    async fn delete(&self, policy: &QuotaPolicy) -> Result<bool, RepositoryError> {
        let change = PolicyChange::Delete(policy.id.clone());
        match self.repository.write(&change, &author(self.quotas.now())).await {
            Ok(_) => Ok(true),
            Err(RepositoryError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The policies about users, among which ours are.
fn users() -> PolicyFilter {
    PolicyFilter { subject_type: Some(SubjectType::User), ..PolicyFilter::default() }
}

/// A whole page, if there is one of this number.
fn whole(number: u32) -> Option<Page> {
    Page::new(number, Page::MAX_SIZE).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use headgate::ManualClock;

    use super::*;
    use crate::{App, Config, Node, quota::Metric};

    const DAY: u64 = 86_400_000_000;
    const START: u64 = 20_000 * DAY;

    async fn policies(quotas: &DailyQuotas) -> u64 {
        quotas.repository.list(&users(), whole(1).unwrap()).await.unwrap().total
    }

    async fn charge(quotas: &DailyQuotas, node: &Node, pubkey: &str) {
        assert!(quotas.charge(node, Metric::Search, pubkey, None).await.is_ok());
    }

    #[tokio::test]
    async fn what_was_not_used_for_a_week_is_deleted_and_made_anew_when_it_is_needed() {
        let data = tempfile::tempdir().unwrap();
        let file = format!("sqlite://{}/node.db", data.path().display());
        let config = Config::load([("CN_DATABASE_URL".to_owned(), file)]).unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(START)));
        let app = App::build(config, clock.clone()).await.unwrap();
        let node = app.node();
        let (quotas, committer) = DailyQuotas::new(node);
        let committing = tokio::spawn(committer.run());
        for pubkey in ["idle", "busy"] {
            charge(&quotas, node, pubkey).await;
        }
        let mut cursor = Cursor::default();
        clock.set(Timestamp::from_micros(START + 6 * DAY));
        charge(&quotas, node, "busy").await;
        assert_eq!(quotas.delete_unused(&mut cursor).await.unwrap(), 0);
        clock.set(Timestamp::from_micros(START + 8 * DAY));
        assert_eq!(quotas.delete_unused(&mut cursor).await.unwrap(), 1);
        assert_eq!(policies(&quotas).await, 1);
        assert_eq!(quotas.delete_unused(&mut cursor).await.unwrap(), 0);
        charge(&quotas, node, "idle").await;
        charge(&quotas, node, "busy").await;
        assert_eq!(policies(&quotas).await, 2);
        committing.abort();
    }
}
