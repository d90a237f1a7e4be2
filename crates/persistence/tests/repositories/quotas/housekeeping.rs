//! Housekeeping: closing periods and deleting old data.

use std::time::Duration;

use headgate::{Clock, Timestamp};
use headgate_quota::{
    Draft, Page, Pruned, QuotaEventLog, QuotaLedger, QuotaPeriod, QuotaPolicyRepository, Retention,
    SubjectType, Unused,
};
use headgate_ratelimit::{AuditFilter, AuditLog};

use super::setup::{Replica, draft, moment};
use crate::support::{Home, at, create, everything, on_both, spec};

on_both!(
    periods_are_closed_once_after_their_end,
    old_data_is_deleted,
    request_ids_are_deleted_in_batches_and_once,
    a_failed_deletion_does_not_stop_others,
    events_are_kept_until_delivered_to_all_sinks,
    unused_policies_are_deleted_with_one_revision,
    unused_data_is_deleted_in_batches,
    migrating_adds_quotas_to_an_older_database,
);

async fn periods_are_closed_once_after_their_end(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 1).await;
    assert_eq!(replica.house.close_periods().await.unwrap(), 0);
    replica.clock.set(moment("2026-02-24T00:00:00Z"));
    let both = tokio::join!(replica.house.close_periods(), other.house.close_periods());
    assert_eq!(both.0.unwrap() + both.1.unwrap(), 1);
    let [closed] =
        replica.kept.history(&policy.id, Page::DEFAULT).await.unwrap().items.try_into().unwrap();
    assert_eq!((closed.closed_at, closed.used), (Some(moment("2026-02-24T00:00:00Z")), 1));
}

async fn old_data_is_deleted(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(2)).await;
    for day in 0..4 {
        replica.try_increment(&policy.id, 2, &format!("req_{day}")).await.unwrap();
        replica.pass(Duration::from_hours(24));
    }
    let retention = Retention {
        periods_before: moment("2026-02-25T00:00:00Z"),
        request_ids_before: moment("2026-02-26T00:00:00Z"),
        events_before: moment("2026-02-24T00:00:00Z"),
        sinks: Vec::new(),
    };
    // Nothing of an open period is deleted.
    let open = replica.house.prune(&retention).await.unwrap();
    assert_eq!(open, Pruned { periods: 0, request_ids: 0, events: 1 });
    replica.house.close_periods().await.unwrap();
    let pruned = replica.house.prune(&retention).await.unwrap();
    assert_eq!(pruned, Pruned { periods: 1, request_ids: 2, events: 0 });
    assert_eq!(replica.house.prune(&retention).await.unwrap(), Pruned::default());

    let history = replica.usage.history(&policy.id, Page::DEFAULT).await.unwrap();
    let kept: Vec<&str> = history.items.iter().map(|period| &*period.span.name).collect();
    assert_eq!(kept, ["2026-02-26", "2026-02-25", "2026-02-24"]);
    assert_eq!(replica.events().await.len(), 3);
    // The usage of a deleted policy is deleted in the same way.
    replica.policies.delete(&policy.id, &replica.author()).await.unwrap();
    let all = Retention { periods_before: at(u64::from(u32::MAX)), ..retention };
    assert_eq!(replica.house.prune(&all).await.unwrap().periods, 3);
}

/// Numbers up to 9,999, in SQL for both databases.
const MANY_IDS: &str = "
    INSERT INTO quota_increments
        (policy_id, period_name, request_id, amount, used, quota_limit, created_at)
    WITH RECURSIVE d(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM d WHERE n < 9)
    SELECT u.policy_id, u.period_name, 'r' || a.n || b.n || c.n || d.n, 1, 1, 10, u.updated_at
    FROM quota_usages u, d a, d b, d c, d";

async fn request_ids_are_deleted_in_batches_and_once(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 1).await;
    let mut console = home.console().await;
    assert_eq!(console.run(MANY_IDS).await, 10_000);
    if let Home::Postgres(_) = home {
        console.run(AT_MOST_5_000).await;
    }
    replica.pass(Duration::from_hours(48));
    replica.try_increment(&policy.id, 1, "live").await.unwrap();
    replica.house.close_periods().await.unwrap();
    let retention = Retention {
        periods_before: at(0),
        request_ids_before: replica.clock.now(),
        events_before: at(0),
        sinks: Vec::new(),
    };
    assert_eq!(replica.house.prune(&retention).await.unwrap().request_ids, 10_000);
    assert_eq!(replica.house.prune(&retention).await.unwrap(), Pruned::default());
    // The period stays in the history, and is not searched again.
    assert_eq!(replica.kept.history(&policy.id, Page::DEFAULT).await.unwrap().items.len(), 2);
    let marked = "UPDATE quota_usages SET used = used WHERE ids_deleted";
    assert_eq!(console.run(marked).await, 1);
    assert_eq!(console.run("DELETE FROM quota_increments").await, 1, "the live one");
}

/// A trigger that fails deletions of request ids.
const REFUSE: (&str, &str) = (
    "CREATE FUNCTION headgate.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'refused for a test'; END $$;
    CREATE TRIGGER refuse BEFORE DELETE ON quota_increments
        FOR EACH ROW EXECUTE FUNCTION headgate.refuse()",
    "CREATE TRIGGER refuse BEFORE DELETE ON quota_increments
    BEGIN SELECT RAISE(ABORT, 'refused for a test'); END",
);

async fn a_failed_deletion_does_not_stop_others(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(1)).await;
    replica.increment(&policy.id, 1).await;
    replica.pass(Duration::from_hours(24));
    replica.try_increment(&policy.id, 1, "r").await.unwrap();
    replica.pass(Duration::from_hours(24));
    replica.house.close_periods().await.unwrap();
    let mut console = home.console().await;
    console.run(if let Home::Postgres(_) = home { REFUSE.0 } else { REFUSE.1 }).await;
    let retention = Retention {
        periods_before: moment("2026-02-24T00:00:01Z"),
        request_ids_before: replica.clock.now(),
        events_before: replica.clock.now(),
        sinks: Vec::new(),
    };
    let error = replica.house.prune(&retention).await.unwrap_err();
    assert!(error.to_string().contains("refused for a test"), "{error}");
    assert_eq!(replica.kept.history(&policy.id, Page::DEFAULT).await.unwrap().items.len(), 1);
    assert!(replica.events().await.is_empty());

    let on_table = if let Home::Postgres(_) = home { " ON quota_increments" } else { "" };
    console.run(&format!("DROP TRIGGER refuse{on_table}")).await;
    assert_eq!(replica.house.prune(&retention).await.unwrap().request_ids, 1);
}

async fn events_are_kept_until_delivered_to_all_sinks(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(1)).await;
    replica.increment(&policy.id, 1).await;
    let id = replica.events().await[0].event.event_id.clone();
    let retention = Retention {
        periods_before: at(0),
        request_ids_before: at(0),
        events_before: at(1_000),
        sinks: vec!["kafka".to_owned(), "webhook".to_owned()],
    };
    for sink in ["kafka", "webhook"] {
        assert_eq!(replica.kept.prune(&retention).await.unwrap().events, 0);
        replica.kept.delivered(sink, &[&id], at(0)).await.unwrap();
    }
    assert_eq!(replica.kept.prune(&retention).await.unwrap().events, 1);
    assert!(replica.events().await.is_empty());
}

async fn unused_policies_are_deleted_with_one_revision(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policies = replica.policies.clone().unrecorded();
    let named = |name: &str, subject: &str| Draft {
        name: name.to_owned().into(),
        subject_type: "user".to_owned().into(),
        subject_id: subject.to_owned().into(),
        ..draft(10)
    };
    let make = async |subject: &str| {
        policies.create(named("free", subject), &replica.author()).await.unwrap()
    };
    let (idle, busy, changed) = (make("idle").await, make("busy").await, make("changed").await);
    for subject in ["x", "y"] {
        make(subject).await;
    }
    let own = replica.create(named("paid", "own")).await;
    let disabled = Draft { enabled: false.into(), ..named("free", "disabled") };
    let tenant = Draft { subject_type: "tenant".to_owned().into(), ..named("free", "tenant") };
    let monthly = Draft { period: "monthly".to_owned().into(), ..named("free", "monthly") };
    let mut others = Vec::new();
    for draft in [disabled, tenant, monthly] {
        others.push(policies.create(draft, &replica.author()).await.unwrap());
    }
    replica.try_increment(&idle.id, 1, "req_1").await.unwrap();
    replica.pass(Duration::from_hours(24));
    let before = replica.clock.now();
    replica.increment(&busy.id, 1).await;
    let change = Draft { limit: 5.into(), ..Draft::default() };
    policies.amend(&changed.id, &change, &replica.author()).await.unwrap();
    other.quotas.catalog().refresh().await.unwrap();
    replica.house.close_periods().await.unwrap();

    let revision = replica.kept.revision().await.unwrap();
    let unused = free(before);
    assert_eq!(replica.kept.delete_unused(&unused).await.unwrap(), 3);
    let after = replica.kept.revision().await.unwrap();
    assert_eq!(after.0, revision.0 + 1, "others are notified once");
    assert_eq!(replica.kept.delete_unused(&unused).await.unwrap(), 0);
    assert_eq!(replica.kept.revision().await.unwrap(), after, "nothing has changed");

    assert!(other.quotas.catalog().refresh().await.unwrap());
    assert_eq!(other.quotas.catalog().len(), 6);
    for policy in [&busy, &changed, &own].into_iter().chain(&others) {
        assert!(other.quotas.catalog().load(&policy.id).is_some());
    }
    assert!(replica.kept.history(&idle.id, Page::DEFAULT).await.unwrap().items.is_empty());
    assert_eq!(replica.kept.history(&busy.id, Page::DEFAULT).await.unwrap().items.len(), 1);
    assert_eq!(home.console().await.run("DELETE FROM quota_increments").await, 0, "request ids");
    // Only changes by callers have audit entries.
    let entries = replica.database.entries(&AuditFilter::default(), Page::DEFAULT).await.unwrap();
    let targets: Vec<&str> = entries.items.iter().map(|entry| &*entry.target).collect();
    assert_eq!(targets, [own.id.to_string()]);
}

async fn unused_data_is_deleted_in_batches(home: &Home) {
    let replica = Replica::start(home).await;
    let (name, user) = ("free".to_owned().into(), "user".to_owned().into());
    let policy = replica.create(Draft { name, subject_type: user, ..draft(10) }).await;
    replica.increment(&policy.id, 1).await;
    let mut console = home.console().await;
    assert_eq!(console.run(MANY_IDS).await, 10_000);
    if let Home::Postgres(_) = home {
        console.run(AT_MOST_5_000).await;
    }
    replica.pass(Duration::from_hours(48));
    replica.house.close_periods().await.unwrap();
    assert_eq!(replica.kept.delete_unused(&free(replica.clock.now())).await.unwrap(), 1);
    for table in ["increments", "usages", "policies"] {
        assert_eq!(console.run(&format!("DELETE FROM quota_{table}")).await, 0, "{table}");
    }
}

/// A trigger that fails larger deletions of request ids.
const AT_MOST_5_000: &str = "
    CREATE FUNCTION headgate.at_most() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF (SELECT count(*) FROM gone) > 5000 THEN RAISE EXCEPTION 'too many at once'; END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER at_most AFTER DELETE ON quota_increments
        REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION headgate.at_most()";

/// Selects unused policies with the name "free".
fn free(before: Timestamp) -> Unused<'static> {
    let (subject_type, period) = (SubjectType::User, QuotaPeriod::Daily);
    Unused { name: "free", subject_type, period, before }
}

/// A database from before quotas existed, with rules.
async fn migrating_adds_quotas_to_an_older_database(home: &Home) {
    let database = home.migrated().await;
    let rule = create(&database, spec("u1", 60), 0).await;
    let mut console = home.console().await;
    for table in
        ["deliveries", "sinks", "events", "increments", "reservations", "usages", "policies"]
    {
        console.run(&format!("DROP TABLE quota_{table}")).await;
    }
    // Remove what later migrations added, too.
    let later = ["service_configs", "audit_logs", "service_states", "denylist", "service_kinds"];
    let changes = ["rate_limit_rule_changes", "quota_policy_deletions"];
    let overrides = ["rate_limit_overrides", "rate_limit_override_changes"];
    for table in later.iter().chain(&changes).chain(&overrides) {
        console.run(&format!("DROP TABLE {table}")).await;
    }
    console.run("DROP INDEX audit_log_action").await;
    // On SQLite, an earlier migration creates the table of rules again.
    if let Home::Postgres(_) = home {
        for column in ["lease_share_percent", "lease_hold_ms", "selector"] {
            console.run(&format!("ALTER TABLE rate_limit_rules DROP COLUMN {column}")).await;
        }
    }
    console.run("DELETE FROM revisions WHERE name <> 'rate_limit_rules'").await;
    console.run("DELETE FROM headgate_migrations WHERE version > 1").await;
    database.close().await;

    let replica = Replica::start(home).await;
    let policy = replica.create(draft(1)).await;
    assert!(replica.increment(&policy.id, 1).await.allowed);
    assert_eq!(everything(&replica.database).await.1, [rule]);
}
