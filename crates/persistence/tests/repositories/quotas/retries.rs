//! Concurrent increments under one request id: usage is exactly what was charged.

use std::{pin::pin, time::Duration};

use futures_util::future::{Either, join_all, select};
use headgate_quota::{
    Draft, QuotaPolicy,
    usecase::{IncrementError, Incremented},
};

use super::setup::{Replica, draft};
use crate::support::{Home, on_both};

on_both!(
    usage_is_what_was_charged_after_concurrent_retries,
    usage_is_what_was_charged_after_conflicting_amounts,
    usage_is_what_was_charged_after_clients_hung_up,
    usage_is_what_was_charged_after_resets_under_load,
);

/// Repetitions of each scenario, each with its own policy.
const ROUNDS: u64 = 60;

/// Concurrent traffic of one policy.
#[derive(Clone, Copy)]
struct Traffic {
    /// True if retries have another amount than the first attempt.
    conflicts: bool,
    /// True if some clients disconnect before the response.
    hang_ups: bool,
    /// True if usage is reset concurrently.
    resets: bool,
}

const RETRIES: Traffic = Traffic { conflicts: false, hang_ups: false, resets: false };

async fn usage_is_what_was_charged_after_concurrent_retries(home: &Home) {
    play(home, RETRIES).await;
}

async fn usage_is_what_was_charged_after_conflicting_amounts(home: &Home) {
    play(home, Traffic { conflicts: true, ..RETRIES }).await;
}

async fn usage_is_what_was_charged_after_clients_hung_up(home: &Home) {
    play(home, Traffic { conflicts: true, hang_ups: true, ..RETRIES }).await;
}

async fn usage_is_what_was_charged_after_resets_under_load(home: &Home) {
    play(home, Traffic { resets: true, ..RETRIES }).await;
}

async fn play(home: &Home, traffic: Traffic) {
    let first = Replica::start(home).await;
    let replicas = [&first, &first.beside(home)];
    // It has no recent commits, and relies on counters.
    let newcomer = first.beside(home);
    first.counter.dawdle(true);
    for round in 0..ROUNDS {
        let subject = format!("tenant-{round}");
        let policy = first.create(Draft { subject_id: subject.into(), ..draft(1_000) }).await;
        replicas[1].quotas.catalog().refresh().await.unwrap();
        join_all((0..12).map(|client| act(replicas, &policy, traffic, round, client))).await;
        // Counters that may show too much are compared once a second.
        first.pass(Duration::from_secs(1));
        settle(replicas, &policy, round).await;
        let kept = first.kept(&policy).await;
        for reader in [&newcomer, replicas[0], replicas[1]] {
            reader.quotas.catalog().refresh().await.unwrap();
            let shown = reader.usage.usage(&policy.id).await.unwrap().used;
            assert_eq!(shown, kept, "usage in round {round}");
            let checked = reader.usage.check(&policy.id, None).await.unwrap();
            assert_eq!(checked.usage.used, kept, "check in round {round}");
        }
        assert_eq!(first.shown(&policy).await, Some(kept), "counter in round {round}");
    }
}

/// One client: some share a request id, some have none.
async fn act(
    [first, second]: [&Replica; 2],
    policy: &QuotaPolicy,
    traffic: Traffic,
    round: u64,
    client: u64,
) {
    let replica = if (round + client).is_multiple_of(2) { first } else { second };
    if traffic.resets && client == 5 {
        replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
        return;
    }
    let amount = if traffic.conflicts { 1 + client % 3 } else { 3 };
    let id = (client % 4 < 3).then(|| format!("req_{}", client % 2));
    let increment = pin!(replica.increments.increment(&policy.id, amount, id.as_deref()));
    let answer = if traffic.hang_ups && client % 4 == 1 {
        match select(increment, pin!(a_while(round * 7 + client))).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => return,
        }
    } else {
        increment.await
    };
    assert_sensible(&answer);
}

fn assert_sensible(answer: &Result<Incremented, IncrementError>) {
    match answer {
        Ok(done) => assert!(done.allowed),
        Err(error) => assert!(matches!(error, IncrementError::Conflict(_)), "{error}"),
    }
}

async fn a_while(length: u64) {
    for _ in 0..length % 40 {
        tokio::task::yield_now().await;
    }
}

/// Waits until earlier increments are decided; they are committed in order.
async fn settle(replicas: [&Replica; 2], policy: &QuotaPolicy, round: u64) {
    for (number, replica) in replicas.into_iter().enumerate() {
        let id = format!("last_{round}_{number}");
        replica.try_increment(&policy.id, 1, &id).await.unwrap();
    }
}
