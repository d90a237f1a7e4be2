//! Reservations: durable, bounded by the limit and by their TTL, charged once.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_quota::{
    Draft, QuotaId, QuotaLedger, QuotaPolicy, Reservation, ReservationId, ReservationStatus,
    SettledFor,
    usecase::{ReservationError, ReservationRequest, Reserved},
};

use super::setup::{Replica, draft, moment};
use crate::support::{Home, on_both};

on_both!(
    reserved_units_are_durable_and_count_against_the_limit,
    settling_is_charged_once_on_every_replica,
    settling_for_more_takes_what_is_left_or_overdraws,
    units_come_back_when_the_ttl_is_over,
    housekeeping_releases_what_nobody_uses,
    a_stream_stops_exactly_at_the_limit,
    a_use_is_charged_once_per_request_id,
    a_request_id_reserves_once,
    bad_requests_take_nothing,
    a_reservation_is_settled_in_its_own_period,
    a_stream_cannot_outlive_its_period_for_long,
    a_reset_keeps_reservations,
    a_disabled_policy_reserves_nothing,
    a_deleted_policy_releases_its_reservations,
    checks_and_counters_follow_reserved_units,
    reserved_units_reach_no_threshold,
    old_reservations_are_deleted,
    concurrent_operations_never_pass_the_limit,
);

/// A request for units with a TTL of 30 seconds.
fn units(amount: u64) -> ReservationRequest<'static> {
    ReservationRequest { amount, ttl_seconds: 30, request_id: None }
}

impl Replica {
    async fn reserve(&self, id: &QuotaId, amount: u64) -> Reserved {
        self.reservations.reserve(id, units(amount)).await.unwrap()
    }

    /// Settles without an overdraft; returns what is settled, returned and owed.
    async fn settle(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
        amount: u64,
    ) -> Result<[u64; 3], ReservationError> {
        let wanted = SettledFor { amount, overdraft: false };
        let done = self.reservations.settle(id, reservation, wanted).await?;
        let Reservation { charged, returned, owed, .. } = done.reservation;
        Ok([charged, returned, owed])
    }

    /// Used and reserved units according to the ledger.
    async fn kept_units(&self, policy: &QuotaPolicy) -> (u64, u64) {
        let usage = self.usage.usage(&policy.id).await.unwrap();
        (usage.used, usage.reserved)
    }
}

async fn reserved_units_are_durable_and_count_against_the_limit(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let made = replica.reserve(&policy.id, 6).await;
    assert_eq!((made.units.used, made.units.reserved, made.units.remaining()), (0, 6, 4));
    let expires = moment("2026-02-23T10:00:30Z");
    assert_eq!((made.reservation.held, made.reservation.expires_at), (6, expires));

    let other = replica.beside(home);
    let found = other.reservations.get(&policy.id, &made.reservation.id).await.unwrap();
    assert_eq!(found, made.reservation);
    assert!(!other.increment(&policy.id, 5).await.allowed);
    assert!(other.increment(&policy.id, 4).await.allowed);
    let denied = other.reservations.reserve(&policy.id, units(1)).await;
    let Err(ReservationError::Denied(usage)) = denied else { panic!("{denied:?}") };
    assert_eq!((usage.used, usage.reserved, usage.remaining), (4, 6, 0));
    assert_eq!(replica.kept_units(&policy).await, (4, 6));
}

async fn settling_is_charged_once_on_every_replica(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    let id = replica.reserve(&policy.id, 6).await.reservation.id;
    let sent = (0..8).map(|number| {
        let replica = if number % 2 == 0 { &replica } else { &other };
        replica.settle(&policy.id, &id, 5)
    });
    for answer in join_all(sent).await {
        assert_eq!(answer.unwrap(), [5, 1, 0], "the same answer each time");
    }
    assert_eq!(replica.kept_units(&policy).await, (5, 0));
    let another = other.settle(&policy.id, &id, 4).await;
    assert!(matches!(another, Err(ReservationError::Ended(_))), "{another:?}");
    let cancelled = other.reservations.cancel(&policy.id, &id).await;
    assert!(matches!(cancelled, Err(ReservationError::Ended(_))), "{cancelled:?}");
    assert_eq!(replica.kept_units(&policy).await, (5, 0));
}

async fn settling_for_more_takes_what_is_left_or_overdraws(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let (first, second) =
        (replica.reserve(&policy.id, 4).await, replica.reserve(&policy.id, 4).await);
    let settled = replica.settle(&policy.id, &first.reservation.id, 9).await.unwrap();
    assert_eq!(settled, [6, 0, 3]);
    let wanted = SettledFor { amount: 15, overdraft: true };
    let done = replica.reservations.settle(&policy.id, &second.reservation.id, wanted).await;
    let done = done.unwrap();
    assert_eq!((done.reservation.charged, done.reservation.owed), (15, 0));
    let usage = replica.usage.usage(&policy.id).await.unwrap();
    assert_eq!((usage.used, usage.remaining, usage.exceeded), (21, 0, true), "the debt is shown");
    assert!(!replica.increment(&policy.id, 1).await.allowed);
}

async fn units_come_back_when_the_ttl_is_over(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    let id = replica.reserve(&policy.id, 6).await.reservation.id;
    replica.reservations.spend(&policy.id, &id, 2, None).await.unwrap();
    replica.reserve(&policy.id, 4).await;
    replica.pass(Duration::from_micros(29_999_999));
    assert!(!other.increment(&policy.id, 1).await.allowed);
    assert_eq!(other.kept_units(&policy).await, (2, 8));
    replica.pass(Duration::from_micros(1));

    // They are back before any operation has ended the reservations.
    assert_eq!(other.kept_units(&policy).await, (2, 0));
    assert!(other.usage.check(&policy.id, Some(8)).await.unwrap().allowed);
    let found = replica.reservations.get(&policy.id, &id).await.unwrap();
    let expected = (ReservationStatus::Expired, 0, 2, 4);
    assert_eq!((found.status, found.held, found.charged, found.returned), expected);
    assert!(other.increment(&policy.id, 8).await.allowed);
    assert_eq!(other.kept_units(&policy).await, (10, 0));
    for answer in [
        replica.settle(&policy.id, &id, 5).await.map(drop),
        replica.reservations.cancel(&policy.id, &id).await.map(drop),
        replica.reservations.spend(&policy.id, &id, 1, None).await.map(drop),
    ] {
        assert!(matches!(answer, Err(ReservationError::Expired(_))), "{answer:?}");
    }
    assert_eq!(other.kept_units(&policy).await, (10, 0));
    assert_eq!(replica.reservations.get(&policy.id, &id).await.unwrap(), found);
}

async fn housekeeping_releases_what_nobody_uses(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 1).await;
    for _ in 0..3 {
        replica.reserve(&policy.id, 2).await;
    }
    assert_eq!(replica.house.release_expired().await.unwrap(), 0);
    replica.pass(Duration::from_secs(31));
    assert_eq!(replica.shown(&policy).await, Some(7));
    assert_eq!(replica.house.release_expired().await.unwrap(), 3);
    assert_eq!(replica.house.release_expired().await.unwrap(), 0);
    assert_eq!(replica.kept_units(&policy).await, (1, 0));
    replica.house.reconcile(Duration::from_secs(60)).await.unwrap();
    assert_eq!(replica.shown(&policy).await, Some(1));
}

async fn a_stream_stops_exactly_at_the_limit(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(100)).await;
    let stream = async |replica: &Replica, id: ReservationId| {
        let mut produced = 0;
        loop {
            let done = replica.reservations.spend(&policy.id, &id, 1, None).await.unwrap();
            produced += 1;
            let last = done.reservation.last_use.unwrap();
            assert_eq!((last.charged, last.owed), (1, 0));
            if last.stop {
                replica.settle(&policy.id, &id, produced).await.unwrap();
                return produced;
            }
        }
    };
    let mut streams = Vec::new();
    for number in 0..8 {
        let replica = if number % 2 == 0 { &replica } else { &other };
        streams.push(stream(replica, replica.reserve(&policy.id, 1).await.reservation.id));
    }
    let produced: u64 = join_all(streams).await.into_iter().sum();
    assert_eq!((produced, replica.kept_units(&policy).await), (100, (100, 0)));
}

async fn a_use_is_charged_once_per_request_id(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let id = replica.reserve(&policy.id, 4).await.reservation.id;
    let first = replica.reservations.spend(&policy.id, &id, 3, Some("a")).await.unwrap();
    let again = replica.beside(home).reservations.spend(&policy.id, &id, 3, Some("a")).await;
    let again = again.unwrap();
    assert!(!first.replayed && again.replayed);
    assert_eq!(first.reservation, again.reservation);
    let conflict = replica.reservations.spend(&policy.id, &id, 2, Some("a")).await;
    assert!(matches!(conflict, Err(ReservationError::Conflict(_))), "{conflict:?}");
    assert_eq!(replica.kept_units(&policy).await, (3, 3), "as much is held for the next use");
}

async fn a_request_id_reserves_once(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    let request = ReservationRequest { request_id: Some("a"), ..units(6) };
    let sent = (0..8).map(|number| {
        let replica = if number % 2 == 0 { &replica } else { &other };
        replica.reservations.reserve(&policy.id, request)
    });
    let made: Vec<Reserved> = join_all(sent).await.into_iter().map(Result::unwrap).collect();
    assert!(made.iter().all(|one| one.reservation.id == made[0].reservation.id));
    assert_eq!(made.iter().filter(|one| !one.replayed).count(), 1);
    let conflict = ReservationRequest { amount: 5, ..request };
    let conflict = other.reservations.reserve(&policy.id, conflict).await;
    assert!(matches!(conflict, Err(ReservationError::Conflict(_))), "{conflict:?}");
    assert_eq!(replica.kept_units(&policy).await, (0, 6));
}

async fn bad_requests_take_nothing(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let id = replica.reserve(&policy.id, 2).await.reservation.id;
    let long = "x".repeat(129);
    for (request, field) in [
        (units(0), "amount"),
        (units(11), "amount"),
        (units(1 << 60), "amount"),
        (ReservationRequest { ttl_seconds: 0, ..units(1) }, "ttl_seconds"),
        (ReservationRequest { ttl_seconds: 3_601, ..units(1) }, "ttl_seconds"),
        (ReservationRequest { request_id: Some(""), ..units(1) }, "request_id"),
        (ReservationRequest { request_id: Some(&long), ..units(1) }, "request_id"),
    ] {
        let answer = replica.reservations.reserve(&policy.id, request).await;
        let Err(ReservationError::Invalid(errors)) = answer else { panic!("{answer:?}") };
        assert_eq!(errors[0].field, field);
    }
    let other = replica.create(Draft { period: "monthly".to_owned().into(), ..draft(10) }).await;
    let unknown: ReservationId = "qres_2026-02-23_0".parse().unwrap();
    for (policy, id) in [(&policy, &unknown), (&other, &id)] {
        let answers = [
            replica.settle(&policy.id, id, 1).await.map(drop),
            replica.reservations.cancel(&policy.id, id).await.map(drop),
            replica.reservations.spend(&policy.id, id, 1, None).await.map(drop),
            replica.reservations.get(&policy.id, id).await.map(drop),
        ];
        for answer in answers {
            assert!(matches!(answer, Err(ReservationError::Unknown(_))), "{answer:?}");
        }
    }
    assert_eq!(replica.kept_units(&policy).await, (0, 2));
    assert!(replica.event_kinds().await.is_empty());
}

async fn a_reservation_is_settled_in_its_own_period(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.clock.set(moment("2026-02-23T23:59:50Z"));
    let id = replica.reserve(&policy.id, 6).await.reservation.id;
    replica.clock.set(moment("2026-02-24T00:00:10Z"));
    assert_eq!(replica.house.close_periods().await.unwrap(), 1);
    assert_eq!(replica.kept_units(&policy).await, (0, 0), "the new day has its whole quota");
    assert_eq!(replica.settle(&policy.id, &id, 8).await.unwrap(), [8, 0, 0]);
    assert_eq!(replica.kept_units(&policy).await, (0, 0));
    let day = replica.kept.usage(&policy.id, "2026-02-23").await.unwrap().unwrap();
    assert_eq!((day.used, day.reserved), (8, 0));
    assert_eq!(replica.shown(&policy).await, None, "the old day has no counter");
}

async fn a_stream_cannot_outlive_its_period_for_long(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(100)).await;
    replica.clock.set(moment("2026-02-23T23:59:50Z"));
    let id = replica.reserve(&policy.id, 1).await.reservation.id;
    let mut uses = 0;
    while let Ok(done) = replica.reservations.spend(&policy.id, &id, 1, None).await {
        assert!(done.reservation.expires_at <= moment("2026-02-24T00:00:30Z"));
        replica.pass(Duration::from_secs(5));
        uses += 1;
    }
    // 23:59:50 and 23:59:55 renew the TTL; after midnight it is not renewed.
    assert_eq!(uses, 7);
    let day = replica.kept.usage(&policy.id, "2026-02-23").await.unwrap().unwrap();
    assert_eq!((day.used, day.reserved), (7, 0));
}

async fn a_reset_keeps_reservations(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let id = replica.reserve(&policy.id, 4).await.reservation.id;
    replica.increment(&policy.id, 6).await;
    let done = replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
    assert_eq!(done.before, 6);
    assert_eq!(replica.kept_units(&policy).await, (0, 4));
    assert!(!replica.increment(&policy.id, 7).await.allowed);
    assert_eq!(replica.settle(&policy.id, &id, 3).await.unwrap(), [3, 1, 0]);
    assert_eq!(replica.kept_units(&policy).await, (3, 0));
}

async fn a_disabled_policy_reserves_nothing(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(Draft { enabled: false.into(), ..draft(10) }).await;
    let made = replica.reserve(&policy.id, 100).await;
    assert_eq!((made.reservation.held, made.units.reserved), (0, 0));
    let id = made.reservation.id;
    let used = replica.reservations.spend(&policy.id, &id, 50, None).await.unwrap();
    assert!(!used.reservation.last_use.unwrap().stop);
    assert_eq!(replica.settle(&policy.id, &id, 70).await.unwrap(), [0, 0, 0]);
    assert_eq!(replica.kept_units(&policy).await, (0, 0));
}

async fn a_deleted_policy_releases_its_reservations(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let id = replica.reserve(&policy.id, 4).await.reservation.id;
    replica.policies.delete(&policy.id, &replica.author()).await.unwrap();
    let answer = replica.settle(&policy.id, &id, 4).await;
    assert!(matches!(answer, Err(ReservationError::Repository(_))), "{answer:?}");
    replica.pass(Duration::from_secs(31));
    assert_eq!(replica.house.release_expired().await.unwrap(), 1);
    let day = replica.kept.usage(&policy.id, "2026-02-23").await.unwrap().unwrap();
    assert_eq!((day.used, day.reserved, day.limit), (0, 0, 10));
}

async fn checks_and_counters_follow_reserved_units(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    let admits = async |replica: &Replica, amount| {
        replica.usage.check(&policy.id, Some(amount)).await.unwrap().allowed
    };
    let id = replica.reserve(&policy.id, 8).await.reservation.id;
    assert_eq!(replica.shown(&policy).await, Some(8));
    for replica in [&replica, &other] {
        assert!(admits(replica, 2).await && !admits(replica, 3).await);
        assert!(!replica.increment(&policy.id, 3).await.allowed);
    }
    replica.settle(&policy.id, &id, 1).await.unwrap();
    // Denials of the last second do not outlive the reservation.
    for replica in [&replica, &other] {
        assert!(admits(replica, 9).await);
    }
    assert!(other.increment(&policy.id, 9).await.allowed);
    assert_eq!(replica.shown(&policy).await, Some(10));
}

async fn reserved_units_reach_no_threshold(home: &Home) {
    let replica = Replica::start(home).await;
    let draft = Draft { alert_threshold_percent: 50.into(), ..draft(10) };
    let policy = replica.create(draft).await;
    let id = replica.reserve(&policy.id, 10).await.reservation.id;
    assert!(replica.event_kinds().await.is_empty());
    replica.settle(&policy.id, &id, 5).await.unwrap();
    assert_eq!(replica.event_kinds().await, [("QUOTA_THRESHOLD_REACHED", 5)]);
    replica.reserve(&policy.id, 5).await;
    assert!(replica.reservations.reserve(&policy.id, units(1)).await.is_err());
    let expected = [("QUOTA_THRESHOLD_REACHED", 5), ("QUOTA_EXCEEDED", 5)];
    assert_eq!(replica.event_kinds().await, expected);
    assert!(replica.reservations.reserve(&policy.id, units(1)).await.is_err());
    assert_eq!(replica.event_kinds().await, expected, "each once");
}

async fn old_reservations_are_deleted(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let id = replica.reserve(&policy.id, 4).await.reservation.id;
    replica.settle(&policy.id, &id, 4).await.unwrap();
    let pending = replica.reserve(&policy.id, 2).await.reservation.id;
    replica.pass(Duration::from_hours(72));
    replica.house.close_periods().await.unwrap();
    let now = headgate::Clock::now(&*replica.clock);
    let retention = headgate_quota::Retention {
        periods_before: now,
        request_ids_before: now,
        events_before: now,
        sinks: Vec::new(),
    };
    let pruned = replica.house.prune(&retention).await.unwrap();
    assert_eq!((pruned.request_ids, pruned.periods), (0, 0), "one is pending");
    assert_eq!(replica.house.release_expired().await.unwrap(), 1);
    let pruned = replica.house.prune(&retention).await.unwrap();
    assert_eq!((pruned.request_ids, pruned.periods), (2, 1));
    for id in [&id, &pending] {
        let gone = replica.reservations.get(&policy.id, id).await;
        assert!(matches!(gone, Err(ReservationError::Unknown(_))), "{gone:?}");
    }
}

/// Clients on two servers reserve, use, settle, cancel, abandon and repeat, all at once.
async fn concurrent_operations_never_pass_the_limit(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(200)).await;
    let client = async |number: u64| {
        let replica = if number.is_multiple_of(2) { &replica } else { &other };
        let mut charged = 0;
        for round in 0..6_u64 {
            let step = number * 7 + round * 3;
            let request_id = format!("{number}-{round}");
            let request =
                ReservationRequest { request_id: Some(&request_id), ..units(1 + step % 9) };
            let made = match replica.reservations.reserve(&policy.id, request).await {
                Ok(made) => made,
                Err(ReservationError::Denied(_)) => continue,
                Err(error) => panic!("{error}"),
            };
            let again = replica.reservations.reserve(&policy.id, request).await.unwrap();
            assert_eq!(made.reservation.id, again.reservation.id);
            let id = made.reservation.id;
            let used = replica.reservations.spend(&policy.id, &id, step % 4, Some("a")).await;
            let used = used.unwrap().reservation.charged;
            charged += match step % 3 {
                0 => {
                    let first = replica.settle(&policy.id, &id, step % 11).await.unwrap();
                    assert_eq!(replica.settle(&policy.id, &id, step % 11).await.unwrap(), first);
                    first[0]
                }
                1 => {
                    replica.reservations.cancel(&policy.id, &id).await.unwrap();
                    used
                }
                _ => used,
            };
            let (used, reserved) = replica.kept_units(&policy).await;
            assert!(used + reserved <= 200, "{used} + {reserved}");
        }
        charged
    };
    let charged: u64 = join_all((0..24).map(client)).await.into_iter().sum();
    replica.pass(Duration::from_secs(31));
    assert_eq!(replica.kept_units(&policy).await, (charged, 0));
    replica.house.release_expired().await.unwrap();
    assert_eq!(replica.kept_units(&policy).await, (charged, 0));
}
