//! The client's address is the default key.

use hyper::Request;
use serde_json::Value;

use crate::harness::Server;

type Headers<'a> = &'a [(&'a str, &'a str)];

async fn key(server: &Server, headers: Headers<'_>) -> Value {
    let mut request = Request::get("/api/v1/rate-limit/check?algorithm=SLIDING_WINDOW");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let reply = server.send(request, "").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["key"].clone()
}

const XFF: &str = "x-forwarded-for";

#[tokio::test]
async fn forwarding_headers_of_untrusted_clients_are_ignored() {
    // A window that does not end during the test.
    let server = Server::start(&[("rate_limiter.sliding_window.window_size", "8640000")]).await;
    let spoofed: [Headers<'_>; 12] = [
        &[],
        &[(XFF, "203.0.113.9")],
        &[(XFF, "203.0.113.9, 198.51.100.2")],
        &[(XFF, "127.0.0.1, 203.0.113.9")],
        &[(XFF, "")],
        &[(XFF, "203.0.113.9"), (XFF, "203.0.113.10")],
        &[("forwarded", "for=203.0.113.9")],
        &[("forwarded", "for=\"[2001:db8::9]:4711\"")],
        &[("x-real-ip", "203.0.113.9")],
        &[("x-client-ip", "203.0.113.9"), ("true-client-ip", "203.0.113.9")],
        &[("x-real-ip", "203.0.113.9"), (XFF, "203.0.113.9"), ("forwarded", "for=203.0.113.9")],
        &[(XFF, "\"; DROP TABLE keys")],
    ];
    for headers in spoofed {
        assert_eq!(key(&server, headers).await, "ip:127.0.0.1", "{headers:?}");
    }
    // All were counted for one client.
    let left = server.remaining("algorithm=SLIDING_WINDOW&key=ip:127.0.0.1").await.json();
    assert_eq!(left["remaining"], 100 - spoofed.len());
}

#[tokio::test]
async fn behind_trusted_proxies_the_client_is_found() {
    let server = Server::start(&[("server.trusted_proxies", "127.0.0.0/8, 10.0.0.0/8")]).await;
    let table: [(Headers<'_>, &str); 14] = [
        (&[], "ip:127.0.0.1"),
        (&[(XFF, "203.0.113.9")], "ip:203.0.113.9"),
        // A forged address is left of those that the proxies append.
        (&[(XFF, "192.0.2.1, 203.0.113.9")], "ip:203.0.113.9"),
        (&[(XFF, "192.0.2.1, 203.0.113.9, 10.1.2.3")], "ip:203.0.113.9"),
        (&[(XFF, "10.9.9.9, 203.0.113.9, 10.1.2.3, 10.4.5.6")], "ip:203.0.113.9"),
        (&[(XFF, "192.0.2.1"), (XFF, "203.0.113.9")], "ip:203.0.113.9"),
        (&[(XFF, "10.1.1.1, 10.2.2.2")], "ip:10.1.1.1"),
        (&[(XFF, "203.0.113.9:5000")], "ip:203.0.113.9"),
        (&[(XFF, "garbage")], "ip:127.0.0.1"),
        (&[(XFF, "2001:db8:1:2:3:4:5:6")], "ip:2001:db8:1:2::/64"),
        (&[(XFF, "::ffff:203.0.113.9")], "ip:203.0.113.9"),
        (&[("forwarded", "for=192.0.2.1, for=203.0.113.9;proto=https")], "ip:203.0.113.9"),
        (&[("forwarded", "for=\"[2001:db8:1:2::9]:4711\"")], "ip:2001:db8:1:2::/64"),
        (&[("x-real-ip", "203.0.113.9")], "ip:203.0.113.9"),
    ];
    for (headers, expected) in table {
        assert_eq!(key(&server, headers).await, expected, "{headers:?}");
    }
}

#[tokio::test]
async fn the_forwarding_header_is_configurable() {
    let keys = [("server.trusted_proxies", "127.0.0.1"), ("server.forwarded_by", "x_real_ip")];
    let server = Server::start(&keys).await;
    let both: Headers<'_> = &[(XFF, "192.0.2.1"), ("x-real-ip", "203.0.113.9")];
    assert_eq!(key(&server, both).await, "ip:203.0.113.9");
    assert_eq!(key(&server, &[(XFF, "192.0.2.1")]).await, "ip:127.0.0.1");
}

#[tokio::test]
async fn ipv6_networks_are_as_long_as_configured() {
    let keys = [("server.trusted_proxies", "127.0.0.1"), ("server.ipv6_prefix_length", "48")];
    let server = Server::start(&keys).await;
    for address in ["2001:db8:1:2::3", "2001:db8:1:ffff::1"] {
        assert_eq!(key(&server, &[(XFF, address)]).await, "ip:2001:db8:1::/48");
    }
    assert_eq!(key(&server, &[(XFF, "203.0.113.9")]).await, "ip:203.0.113.9");
}

#[tokio::test]
async fn the_given_key_is_counted() {
    let server = Server::start(&[("server.trusted_proxies", "127.0.0.1")]).await;
    let request = Request::get("/api/v1/rate-limit/check?key=user:1").header(XFF, "203.0.113.9");
    assert_eq!(server.send(request, "").await.json()["key"], "user:1");
}
