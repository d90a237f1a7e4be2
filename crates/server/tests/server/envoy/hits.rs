//! The hits of descriptors.

use super::{
    client::{
        Client, envoy::extensions::common::ratelimit::v3::RateLimitDescriptor, of, request, taking,
    },
    start,
};

#[tokio::test]
async fn hits_of_a_request_apply_to_its_descriptors() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let path = [of(&[("path", "/a")])];
    let mut request = request("edge", &path);
    assert_eq!(client.send(request.clone()).await.each(), [(false, 99)]);
    request.hits_addend = 9;
    assert_eq!(client.send(request.clone()).await.each(), [(false, 90)]);
    request.hits_addend = 91;
    assert_eq!(client.send(request.clone()).await.each(), [(true, 90)]);
    request.hits_addend = 90;
    assert_eq!(client.send(request).await.each(), [(false, 0)]);
}

#[tokio::test]
async fn hits_of_a_descriptor_take_precedence_and_zero_only_peeks() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let (a, b) = ([("path", "/a")], [("path", "/b")]);
    let mut request = request("edge", &[taking(5, &a), of(&b)]);
    request.hits_addend = 2;
    assert_eq!(client.send(request).await.each(), [(false, 95), (false, 98)]);
    for _ in 0..3 {
        let looked = client.ask("edge", &[taking(0, &a), taking(0, &b)]).await;
        assert_eq!((looked.is_over(), looked.each()), (false, vec![(false, 95), (false, 98)]));
    }
    client.ask("edge", &[taking(95, &a)]).await;
    let looked = client.ask("edge", &[taking(0, &a), taking(1, &b)]).await;
    assert_eq!((looked.is_over(), looked.each()), (true, vec![(true, 0), (false, 98)]));
    assert!(looked.header("retry-after").is_some());
}

#[tokio::test]
async fn hits_above_the_limit_are_denied_and_take_nothing() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let (a, b) = ([("path", "/a")], [("path", "/b")]);
    for hits in [101, u64::MAX] {
        let answer = client.ask("edge", &[taking(hits, &a), of(&b)]).await;
        assert_eq!((answer.is_over(), answer.each()), (true, vec![(true, 100), (false, 100)]));
        assert_eq!(answer.header("retry-after"), None);
    }
}

#[tokio::test]
async fn negative_hits_are_given_back() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let path = [("path", "/a")];
    client.ask("edge", &[taking(60, &path)]).await;
    let refund = |hits| RateLimitDescriptor { is_negative_hits: true, ..taking(hits, &path) };
    assert_eq!(client.ask("edge", &[refund(20)]).await.each(), [(false, 60)]);
    assert_eq!(client.ask("edge", &[refund(1000)]).await.each(), [(false, 100)]);
    // Together with a descriptor that takes.
    let both = [refund(1), taking(3, &[("path", "/b")])];
    assert_eq!(client.ask("edge", &both).await.each(), [(false, 100), (false, 97)]);
}

#[tokio::test]
async fn hits_of_descriptors_that_share_a_counter_are_added() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let files = |path: &'static str| of(&[("path", path)]);
    let answer = client.ask("edge", &[files("/files/a"), files("/files/b")]).await;
    assert_eq!((answer.is_over(), answer.each()), (false, vec![(false, 1), (false, 0)]));
    let same = [of(&[("address", "192.0.2.9")]), taking(2, &[("address", "192.0.2.9")])];
    assert_eq!(client.ask("edge", &same).await.each(), [(false, 2), (false, 0)]);
    assert!(client.ask("edge", &same[..1]).await.is_over());
}
