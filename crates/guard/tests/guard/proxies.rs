use headgate_guard::{Cidr, Guard, Routes, TrustedProxies};

use crate::support::{Server, daily, guard};

const TRUSTED: &str = "127.0.0.1/32";

async fn behind_a_proxy() -> Server {
    let proxies = TrustedProxies::from_iter([TRUSTED.parse::<Cidr>().unwrap()]);
    let guard = Guard::builder(daily(2), Routes::all("public")).trusted_proxies(proxies);
    Server::behind(&guard.build().unwrap()).await
}

#[tokio::test]
async fn fifty_clients_behind_a_trusted_proxy_have_fifty_budgets() {
    let server = behind_a_proxy().await;
    for expected in [200, 200, 429] {
        for client in 0..50 {
            let forwarded = format!("203.0.113.{client}");
            let answer = server.get("/", &[("x-forwarded-for", &forwarded)]).await;
            assert_eq!(answer.status(), expected, "client {client}");
        }
    }
}

#[tokio::test]
async fn a_forged_forwarded_address_is_ignored() {
    let server = behind_a_proxy().await;
    let mut statuses = Vec::new();
    for spoofed in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        let forwarded = format!("{spoofed}, 203.0.113.9");
        let answer = server.get("/", &[("x-forwarded-for", &forwarded)]).await;
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn forwarding_headers_from_other_peers_are_ignored() {
    let server = Server::behind(&guard(2)).await;
    let mut statuses = Vec::new();
    for client in 0..4 {
        let forwarded = format!("203.0.113.{client}");
        let headers =
            [("x-forwarded-for", &*forwarded), ("x-real-ip", &forwarded), ("forwarded", "for=a")];
        statuses.push(server.get("/", &headers).await.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 429]);
    // Another address is another client.
    assert_eq!(server.get_from("127.0.0.2", "/", &[]).await.status(), 200);
}

#[tokio::test]
async fn an_ipv6_network_of_64_bits_is_one_client() {
    let guard = guard(1);
    let check = async |address: &str| guard.check("public", address.parse().unwrap()).await.is_ok();
    assert!(check("2001:db8:1:2::1").await);
    assert!(!check("2001:db8:1:2:ffff::9").await);
    assert!(check("2001:db8:1:3::1").await);
    assert!(check("192.0.2.1").await && !check("::ffff:192.0.2.1").await);
}
