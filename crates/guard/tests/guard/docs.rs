//! The guide quotes its example, which behaves as described.

use headgate_guard::{Cidr, TrustedProxies};

use crate::support::{Server, by_clock, header};

#[path = "../../examples/axum.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod example;

const GUIDE: &str = include_str!("../../../../docs/guides/protect-an-axum-service.md");
const EXAMPLE: &str = include_str!("../../examples/axum.rs");

#[test]
fn the_guide_quotes_its_example() {
    let plain = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let example = plain(EXAMPLE);
    let quotes = GUIDE.split("```rust\n// crates/guard/examples/axum.rs\n").skip(1);
    let quotes: Vec<_> = quotes.map(|rest| plain(rest.split("```").next().unwrap())).collect();
    assert_eq!(quotes.len(), 3);
    for quote in quotes {
        assert!(example.contains(quote.trim()), "{quote}");
    }
}

#[tokio::test]
async fn the_example_does_what_the_guide_says() {
    let proxies = TrustedProxies::from_iter(["127.0.0.1/32".parse::<Cidr>().unwrap()]);
    let guard = example::guard(by_clock().1, proxies).unwrap();
    let server = Server::start(example::router(&guard)).await;
    guard.replace(example::policy(1, 2, 1).unwrap()).unwrap();

    let get = async |path: &str, client: &str, pubkey: &str| {
        let headers = [("x-forwarded-for", client), ("x-pubkey", pubkey)];
        server.get(path, &headers).await
    };
    let challenge = async |client: &str| get("/v1/auth/challenge", client, "a").await;
    assert_eq!(challenge("192.0.2.1").await.status(), 200);
    let denied = challenge("192.0.2.1").await;
    assert_eq!((denied.status().as_u16(), header(&denied, "retry-after")), (429, "60"));
    assert_eq!(challenge("192.0.2.2").await.status(), 200);

    assert_eq!(get("/v1/search", "192.0.2.1", "a").await.status(), 200);
    assert_eq!(get("/v1/search", "192.0.2.2", "a").await.status(), 429, "by subject");
    assert_eq!(get("/v1/search", "192.0.2.1", "b").await.status(), 429, "by address");
    assert_eq!(get("/v1/search", "192.0.2.2", "b").await.status(), 200, "nothing was taken");

    guard.replace(example::policy(1, 2, 1).unwrap().enabled(false)).unwrap();
    assert_eq!(challenge("192.0.2.1").await.status(), 200);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(get("/v1/bootstrap/nodes", "192.0.2.1", "a").await.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429], "always on");
}
