//! Every case of the configuration format, on every store.

use std::slice;

use super::{
    client::{
        Client, allowing, envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit, of,
    },
    counted, metric, start,
};
use crate::harness::Server;

#[tokio::test]
async fn every_case_decides_as_documented_in_memory() {
    every_case(&start(&[]).await).await;
}

/// Runs all cases, on unused counters.
pub(super) async fn every_case(server: &Server) {
    let client = Client::connect(server.grpc_address).await;
    nested(&client).await;
    most_specific(&client).await;
    depth(&client).await;
    unlimited(&client).await;
    wildcards(&client).await;
    shadow(&client, server).await;
    replaced(&client).await;
    overridden(&client).await;
    buckets(&client).await;
    quota_mode(&client).await;
}

/// All descriptors have room, or none is charged.
async fn nested(client: &Client) {
    let both = [of(&[("campaign", "newsletter"), ("mailbox", "m1")]), of(&[("mailbox", "m1")])];
    for left in [1, 0] {
        let answer = client.ask("mail", &both).await;
        assert!(!answer.is_over());
        assert_eq!(answer.each(), [(false, left), (false, left + 2)]);
    }
    for _ in 0..3 {
        let answer = client.ask("mail", &both).await;
        assert!(answer.is_over());
        assert_eq!(answer.each(), [(true, 0), (false, 2)]);
    }
    let status = &client.ask("mail", &both[1..]).await.0.statuses[0];
    let limit = status.current_limit.as_ref().unwrap();
    assert_eq!((limit.name.as_str(), limit.requests_per_unit), ("mailbox_total", 4));
    assert_eq!((limit.unit(), limit.unit_multiplier), (Unit::Month, None));
    let seconds = status.duration_until_reset.unwrap().seconds;
    assert!((1..=30 * 86_400).contains(&seconds), "{seconds}");
    // Another mailbox has a counter of its own.
    let other = [of(&[("campaign", "newsletter"), ("mailbox", "m2")])];
    assert_eq!(client.ask("mail", &other).await.each(), [(false, 1)]);
}

async fn most_specific(client: &Client) {
    assert_eq!(client.ask("edge", &[of(&[("address", "192.0.2.1")])]).await.each(), [(false, 2)]);
    let banned = client.ask("edge", &[of(&[("address", "203.0.113.9")])]).await;
    assert_eq!((banned.is_over(), banned.each()), (true, vec![(true, 0)]));
    assert_eq!(banned.header("retry-after"), None);
    // A denied request takes nothing from its other descriptors.
    let both = [of(&[("address", "203.0.113.9")]), of(&[("address", "192.0.2.1")])];
    for _ in 0..3 {
        assert_eq!(client.ask("edge", &both).await.each(), [(true, 0), (false, 2)]);
    }
}

/// An entry matches descriptors of the same depth.
async fn depth(client: &Client) {
    let deeper = of(&[("address", "192.0.2.2"), ("more", "x")]);
    let shallower = of(&[("service", "auth")]);
    let unknown = of(&[("nothing", "x")]);
    let trusted = of(&[("trusted", "x")]);
    let answer = client.ask("edge", &[deeper, shallower, unknown, trusted]).await;
    assert!(!answer.is_over());
    assert_eq!(answer.each(), [(false, 0); 4]);
    assert!(answer.0.statuses.iter().all(|status| status.current_limit.is_none()));
    assert!(!client.ask("no-such-domain", &[of(&[("address", "192.0.2.2")])]).await.is_over());
}

async fn unlimited(client: &Client) {
    let answer = client.ask("edge", &[of(&[("partner", "p")])]).await;
    assert_eq!((answer.is_over(), answer.each()), (false, vec![(false, u32::MAX)]));
    assert!(answer.0.statuses[0].current_limit.is_none());
}

/// Each value that a wildcard matches has a counter of its own, unless they share one.
async fn wildcards(client: &Client) {
    let path = |path: &'static str| [of(&[("path", path)])];
    for left in [1, 0] {
        assert_eq!(client.ask("edge", &path("/reports/a")).await.each(), [(false, left)]);
    }
    assert!(client.ask("edge", &path("/reports/a")).await.is_over());
    let answer = client.ask("edge", &path("/reports/b")).await;
    assert_eq!(answer.each(), [(false, 1)]);
    assert_eq!(answer.0.statuses[0].current_limit.as_ref().unwrap().unit(), Unit::Week);

    assert_eq!(client.ask("edge", &path("/files/a")).await.each(), [(false, 1)]);
    let answer = client.ask("edge", &path("/files/b")).await;
    assert_eq!(answer.each(), [(false, 0)]);
    let limit = answer.0.statuses[0].current_limit.as_ref().unwrap();
    assert_eq!((limit.unit(), limit.unit_multiplier), (Unit::Day, Some(30)));
    assert!(client.ask("edge", &path("/files/c")).await.is_over());
    assert_eq!(client.ask("edge", &path("/other")).await.each(), [(false, 99)]);
}

async fn shadow(client: &Client, server: &Server) {
    let user = |user: &'static str| [of(&[("service", "auth"), ("user", user)])];
    for left in [0, 0, 0] {
        let answer = client.ask("edge", &user("trial")).await;
        assert_eq!((answer.is_over(), answer.each()), (false, vec![(false, left)]));
    }
    let number = |outcome: &str| counted("edge", "service.user_trial", outcome);
    assert_eq!(metric(server, &number("shadow_mode")).await, Some(2));
    assert_eq!(metric(server, &number("over_limit")).await, Some(0));
    for over in [false, false, true] {
        assert_eq!(client.ask("edge", &user("paying")).await.is_over(), over);
    }
    // A limit in shadow mode does not keep others from being charged.
    let both = [user("trial"), [of(&[("address", "192.0.2.3")])]].concat();
    assert_eq!(client.ask("edge", &both).await.each(), [(false, 0), (false, 2)]);

    for _ in 0..3 {
        assert!(!client.ask("rehearsal", &[of(&[("user", "u")])]).await.is_over());
    }
    assert_eq!(metric(server, &counted("rehearsal", "user", "shadow_mode")).await, Some(2));
}

async fn replaced(client: &Client) {
    let group = of(&[("group", "read"), ("user", "u1")]);
    let endpoint = of(&[("endpoint", "search"), ("user", "u1")]);
    for left in [2, 1, 0] {
        let answer = client.ask("tiers", &[group.clone(), endpoint.clone()]).await;
        assert_eq!((answer.is_over(), answer.each()), (false, vec![(false, 0), (false, left)]));
        assert!(answer.0.statuses[0].current_limit.is_none());
    }
    assert!(client.ask("tiers", &[group.clone(), endpoint]).await.is_over());
    // The replaced limit was not charged.
    assert_eq!(client.ask("tiers", slice::from_ref(&group)).await.each(), [(false, 0)]);
    assert!(client.ask("tiers", &[group]).await.is_over());
}

async fn overridden(client: &Client) {
    let descriptor = [allowing(2, &[("address", "192.0.2.4")])];
    for left in [1, 0] {
        let answer = client.ask("edge", &descriptor).await;
        assert_eq!(answer.each(), [(false, left)]);
        let limit = answer.0.statuses[0].current_limit.as_ref().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit()), (2, Unit::Year));
    }
    assert!(client.ask("edge", &descriptor).await.is_over());
    assert!(client.ask("edge", &[allowing(0, &[("anything", "x")])]).await.is_over());
    // An override without a unit is ignored.
    let mut unknown = allowing(7, &[("address", "192.0.2.5")]);
    unknown.limit.as_mut().unwrap().unit = 0;
    assert_eq!(client.ask("edge", &[unknown]).await.each(), [(false, 2)]);
}

async fn buckets(client: &Client) {
    let plan = [of(&[("plan", "p")])];
    for left in [2, 1, 0] {
        assert_eq!(client.ask("edge", &plan).await.each(), [(false, left)]);
    }
    let answer = client.ask("edge", &plan).await;
    assert!(answer.is_over());
    // A tenth of a year, less the time since.
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((3_153_000..=3_153_600).contains(&wait), "{wait}");
}

async fn quota_mode(client: &Client) {
    let both = [of(&[("fast", "x")]), of(&[("slow", "x")])];
    assert_eq!(client.ask("quota", &both).await.each(), [(false, 0), (false, 1)]);
    let answer = client.ask("quota", &both).await;
    assert_eq!((answer.is_over(), answer.each()), (false, vec![(true, 0), (false, 0)]));
    let answer = client.ask("quota", &both).await;
    assert_eq!((answer.is_over(), answer.each()), (true, vec![(true, 0), (true, 0)]));
}
