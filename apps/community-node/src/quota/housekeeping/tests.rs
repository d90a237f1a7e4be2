use std::{net::IpAddr, sync::Arc};

use headgate::ManualClock;
use headgate_quota::{Page, PolicyFilter};
use headgate_ratelimit::{AuditFilter, AuditLog};
use sqlx::{Connection as _, SqliteConnection};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::{
    App, Config, Node,
    quota::{Metric, Payer, Refusal},
};

const DAY: u64 = 86_400_000_000;
const START: u64 = 20_000 * DAY;

/// A node with room for `max` policies.
struct Running {
    clock: Arc<ManualClock>,
    node: Arc<Node>,
    quotas: DailyQuotas,
    committing: JoinHandle<()>,
    data: TempDir,
}

impl Running {
    async fn with_room_for(max: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let file = format!("sqlite://{}/node.db", data.path().display());
        let variables = [("CN_DATABASE_URL", file.as_str()), ("CN_MAX_QUOTAS", max)];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(START)));
        let app = App::build(Config::load(variables).unwrap(), clock.clone()).await.unwrap();
        let node = Arc::clone(app.node());
        // The node waits for it for two seconds, and a busy machine may take longer.
        node.database.migrate().await.unwrap();
        let (quotas, committer) = DailyQuotas::new(&node).unwrap();
        let committing = tokio::spawn(committer.run());
        Self { clock, node, quotas, committing, data }
    }

    async fn charge(&self, pubkey: &str) -> Result<(), Refusal> {
        self.charge_from(None, pubkey).await
    }

    async fn charge_from(&self, address: Option<IpAddr>, pubkey: &str) -> Result<(), Refusal> {
        let payer = Payer { pubkey, address };
        self.quotas.charge(&self.node, Metric::Search, payer, None).await
    }

    async fn policies(&self) -> u64 {
        let listed = self.quotas.repository.list(&PolicyFilter::default(), Page::DEFAULT).await;
        listed.unwrap().total
    }

    /// Returns true if `pubkey` is charged to the quota that newcomers share.
    async fn is_shared(&self, pubkey: &str) -> bool {
        let limit = self.node.user_api.with(|users| users.quota.search_requests).unwrap();
        let payer = Payer { pubkey, address: None };
        let budget = self.quotas.budget(&self.node, Metric::Search, payer, limit).await;
        budget.map_err(|refusal| format!("{refusal:?}")).unwrap().shared
    }

    /// Runs a statement on the database, like an operator with a console.
    async fn run(&self, sql: &'static str) {
        let file = format!("sqlite://{}/node.db", self.data.path().display());
        let mut console = SqliteConnection::connect(&file).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut console).await.unwrap();
    }

    fn at(&self, days: u64) {
        self.clock.set(Timestamp::from_micros(START + days * DAY));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.committing.abort();
    }
}

fn subject(pubkey: &str) -> String {
    format!("{}:{pubkey}", Metric::Search.name())
}

#[tokio::test]
async fn a_quota_not_used_for_a_day_is_deleted_and_created_again_on_demand() {
    let running = Running::with_room_for("100").await;
    for pubkey in ["idle", "busy"] {
        running.charge(pubkey).await.unwrap();
    }
    running.at(1);
    running.charge("busy").await.unwrap();
    assert_eq!(running.quotas.delete_unused().await.unwrap(), 0);
    running.at(2);
    assert_eq!(running.quotas.delete_unused().await.unwrap(), 1);
    assert_eq!(running.policies().await, 1);
    assert_eq!(running.quotas.delete_unused().await.unwrap(), 0);
    for pubkey in ["idle", "busy"] {
        running.charge(pubkey).await.unwrap();
    }
    assert_eq!(running.policies().await, 2);
}

#[tokio::test]
async fn new_keys_beyond_the_bound_share_one_quota_until_there_is_room() {
    let running = Running::with_room_for("3").await;
    for pubkey in ["a", "b", "c"] {
        running.charge(pubkey).await.unwrap();
    }
    let limit = running.node.user_api.with(|users| users.quota.search_requests).unwrap();
    for n in 0..limit {
        running.charge(&format!("new{n}")).await.unwrap();
    }
    assert_eq!(running.policies().await, 4, "for any number of keys");
    match running.charge("another").await {
        Err(Refusal::Exceeded { current, shared: true, .. }) => assert_eq!(current, limit),
        other => panic!("{other:?}"),
    }
    // Existing keys keep their quotas.
    running.charge("a").await.unwrap();

    running.at(2);
    running.charge("a").await.unwrap();
    assert_eq!(running.quotas.delete_unused().await.unwrap(), 3);
    running.charge("another").await.unwrap();
    running.charge("a").await.unwrap();
    assert_eq!(running.policies().await, 2);
}

#[tokio::test]
async fn a_flood_of_new_keys_from_one_network_leaves_quotas_for_newcomers_of_others() {
    let running = Running::with_room_for("64").await;
    for n in 0..64 {
        running.charge(&format!("own{n}")).await.unwrap();
    }
    let limit = running.node.user_api.with(|users| users.quota.search_requests).unwrap();
    let flood = Some(IpAddr::from([192, 0, 2, 1]));
    for n in 0..limit {
        running.charge_from(flood, &format!("flood{n}")).await.unwrap();
    }
    assert!(matches!(running.charge_from(flood, "flood").await, Err(Refusal::Exceeded { .. })));
    // One in four networks shares with the flood.
    let used_up = running.quotas.shared.of(flood);
    for n in 2..=u8::MAX {
        let address = Some(IpAddr::from([198, 51, 100, n]));
        let charged = running.charge_from(address, &format!("honest{n}")).await;
        assert_eq!(charged.is_ok(), running.quotas.shared.of(address) != used_up, "{charged:?}");
    }
    assert_eq!(running.policies().await, 64 + 4, "for any number of keys and networks");
}

#[tokio::test]
async fn beyond_the_bound_no_request_waits_or_queries_the_database_twice() {
    let running = Running::with_room_for("1").await;
    for pubkey in ["own", "new"] {
        running.charge(pubkey).await.unwrap();
    }
    // Not even while another policy is being created.
    let turn = running.quotas.making.lock().await;
    let another = time::timeout(Duration::from_secs(120), running.is_shared("another"));
    assert!(another.await.expect("no wait"));
    drop(turn);
    // Once more, because the newcomers' policy was created since.
    assert!(running.is_shared("new").await);
    running.run("ALTER TABLE quota_policies RENAME TO away").await;
    assert!(running.is_shared("new").await, "without a query");
    assert!(running.is_shared("another").await, "without a query");
    running.run("ALTER TABLE away RENAME TO quota_policies").await;

    // A key that is given a policy has it at once.
    running.quotas.create(&running.node, &subject("new"), 5).await.unwrap();
    assert!(!running.is_shared("new").await);
    assert!(running.is_shared("another").await);
}

#[tokio::test]
async fn concurrent_new_keys_do_not_exceed_the_bound() {
    let running = Running::with_room_for("3").await;
    let keys: Vec<String> = (0..20).map(|n| format!("key{n}")).collect();
    let charged = futures_util::future::join_all(keys.iter().map(|key| running.charge(key))).await;
    assert!(charged.iter().all(Result::is_ok));
    assert_eq!(running.policies().await, 4);

    let running = Running::with_room_for("1").await;
    let charged = futures_util::future::join_all((0..20).map(|_| running.charge("same"))).await;
    assert!(charged.iter().all(Result::is_ok));
    assert_eq!(running.policies().await, 1, "it has the last place, and shares with no other key");
}

#[tokio::test]
async fn quotas_of_the_node_itself_are_not_audited() {
    let running = Running::with_room_for("100").await;
    running.charge("a").await.unwrap();
    running.at(2);
    assert_eq!(running.quotas.delete_unused().await.unwrap(), 1);
    let entries = running.node.database.entries(&AuditFilter::default(), Page::DEFAULT).await;
    assert!(entries.unwrap().items.is_empty());
}
