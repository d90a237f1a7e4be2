//! Answers that clients of envoyproxy/ratelimit rely on.

use std::slice;

use super::{
    client::{
        Answer, Client,
        envoy::{
            extensions::common::ratelimit::v3::RateLimitDescriptor,
            service::ratelimit::v3::rate_limit_response::rate_limit::Unit,
        },
        of, taking,
    },
    counted, metric, start,
};

const DOMAIN: &str = "upstream";

/// Seconds until a descriptor's limit is reset, without a fraction.
fn reset(answer: &Answer, index: usize) -> i64 {
    let reset = answer.0.statuses[index].duration_until_reset.unwrap();
    assert_eq!(reset.nanos, 0, "{answer:?}");
    reset.seconds
}

/// Requests per unit of the limit that was matched.
fn allows(answer: &Answer) -> u32 {
    answer.0.statuses[0].current_limit.as_ref().unwrap().requests_per_unit
}

#[tokio::test]
async fn resets_are_whole_seconds_rounded_up() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    for hits in [1, 0, 1_000_000] {
        let answer = client.ask(DOMAIN, &[taking(hits, &[("every_second", "x")])]).await;
        assert_eq!(reset(&answer, 0), 1, "{hits}");
    }
}

#[tokio::test]
async fn a_peek_at_an_untouched_counter_has_the_end_of_its_window() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let both = [taking(0, &[("few", "untouched")]), of(&[("few", "touched")])];
    let answer = client.ask(DOMAIN, &both).await;
    assert_eq!((answer.is_over(), answer.each()), (false, vec![(false, 3), (false, 2)]));
    assert_eq!(reset(&answer, 0), reset(&answer, 1));
    assert!(reset(&answer, 0) > 0);
}

#[tokio::test]
async fn a_limit_of_zero_denies_hits_and_later_peeks() {
    for denied in ["none", "all"] {
        let server = start(&[("envoy.denied_consumes", denied)]).await;
        let client = Client::connect(server.grpc_address).await;
        let banned = [("banned", "x")];
        let (look, take) = ([taking(0, &banned)], [of(&banned)]);
        assert_eq!(client.ask(DOMAIN, &look).await.each(), [(false, 0)], "{denied}");
        for _ in 0..2 {
            let answer = client.ask(DOMAIN, &take).await;
            assert_eq!((answer.is_over(), answer.each()), (true, vec![(true, 0)]), "{denied}");
            assert_eq!((allows(&answer), answer.header("retry-after")), (0, None), "{denied}");
            let limit = answer.0.statuses[0].current_limit.as_ref().unwrap();
            assert_eq!(limit.unit(), Unit::Year);
            assert!(reset(&answer, 0) > 0);
        }
        assert_eq!(client.ask(DOMAIN, &look).await.each(), [(true, 0)], "{denied}");
        // Other values are not affected.
        let other = [taking(0, &[("banned", "y")])];
        assert_eq!(client.ask(DOMAIN, &other).await.each(), [(false, 0)], "{denied}");
    }
}

#[tokio::test]
async fn a_repeated_descriptor_takes_twice_in_order() {
    let twice =
        |hits| -> [RateLimitDescriptor; 2] { [of(&[("few", "x")]), taking(hits, &[("few", "x")])] };
    for (denied, first, after) in [("none", 1, 1), ("all", 0, 0)] {
        let server = start(&[("envoy.denied_consumes", denied)]).await;
        let client = Client::connect(server.grpc_address).await;
        let answer = client.ask(DOMAIN, &twice(1)).await;
        assert_eq!((answer.is_over(), answer.each()), (false, vec![(false, 2), (false, 1)]));
        // One unit is left: the first descriptor has room, the second has not.
        let answer = client.ask(DOMAIN, &twice(1)).await;
        let expected = vec![(false, first), (true, after)];
        assert_eq!((answer.is_over(), answer.each()), (true, expected), "{denied}");
        let look = [taking(0, &[("few", "x")])];
        assert_eq!(client.ask(DOMAIN, &look).await.each(), [(after == 0, after)], "{denied}");
    }
    // Together more than the limit.
    for (denied, left) in [("none", [3, 3]), ("all", [2, 0])] {
        let server = start(&[("envoy.denied_consumes", denied)]).await;
        let client = Client::connect(server.grpc_address).await;
        let answer = client.ask(DOMAIN, &twice(3)).await;
        let expected = vec![(false, left[0]), (true, left[1])];
        assert_eq!((answer.is_over(), answer.each()), (true, expected), "{denied}");
    }
}

#[tokio::test]
async fn unlimited_ignores_its_number_and_cannot_be_replaced() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let both = [of(&[("free", "x")]), of(&[("instead", "x")])];
    for left in [9, 8] {
        let answer = client.ask(DOMAIN, &both).await;
        assert_eq!(answer.each(), [(false, u32::MAX), (false, left)]);
        assert!(answer.0.statuses[0].current_limit.is_none());
    }
}

#[tokio::test]
async fn wildcards_match_anywhere_and_the_first_in_the_file_wins() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    for (path, limit) in [
        ("/v1/users/action", 3),
        ("/v1/7/action", 1),
        ("/v1//action", 1),
        ("/v1/7/other", 2),
        ("/v1/action", 2),
        ("/v2/7/action", 10),
    ] {
        let answer = client.ask(DOMAIN, &[of(&[("path", path)])]).await;
        assert_eq!(allows(&answer), limit, "{path}");
        // Each value has a counter of its own.
        assert_eq!(answer.each(), [(false, limit - 1)], "{path}");
    }
    // A value equal to a pattern in the file matches that one first.
    for (value, limit) in [("a1b2", 5), ("a*b*", 6)] {
        let answer = client.ask(DOMAIN, &[of(&[("literal", value)])]).await;
        assert_eq!(allows(&answer), limit, "{value}");
    }
    let unlimited = client.ask(DOMAIN, &[of(&[("host", "example.com")])]).await;
    assert!(unlimited.0.statuses[0].current_limit.is_none());
}

#[tokio::test]
async fn values_that_share_a_threshold_share_a_counter_and_metrics() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    for (host, left) in [("a.example.com", 1), ("b.c.example.com", 0)] {
        let descriptor = of(&[("host", host)]);
        assert_eq!(client.ask(DOMAIN, slice::from_ref(&descriptor)).await.each(), [(false, left)]);
    }
    assert!(client.ask(DOMAIN, &[of(&[("host", "d.example.com")])]).await.is_over());
    let number = counted(DOMAIN, "host_*.example.com", "over_limit");
    assert_eq!(metric(&server, &number).await, Some(1));
}
