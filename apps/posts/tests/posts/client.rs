//! Whose address counts.

use hyper::Request;

use crate::harness::{Reply, Server};

async fn post(server: &Server, forwarded_for: &str, i: usize) -> Reply {
    let post = format!(r#"{{"post":{{"nickname":"名前{i}","body":"投稿 {i} 番"}}}}"#);
    let request = Request::post("/api/posts").header("x-forwarded-for", forwarded_for);
    server.send(request, &post).await
}

#[tokio::test]
async fn without_trusted_proxies_only_the_socket_counts() {
    let server = Server::with(&[]).await;
    post(&server, "192.0.2.1", 1).await.is_created();
    post(&server, "192.0.2.2", 2).await.is_limited();
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_address_that_it_wrote_counts() {
    let server = Server::embedded().await;
    post(&server, "203.0.113.1, 192.0.2.1", 1).await.is_created();
    // The client changed what it pretends; the proxy wrote the same.
    post(&server, "203.0.113.2, 192.0.2.1", 2).await.is_limited();
    post(&server, "203.0.113.1, 192.0.2.2", 3).await.is_created();
}

#[tokio::test]
async fn of_a_proxy_that_writes_x_real_ip_no_other_header_is_believed() {
    let proxy = [("POSTS_TRUSTED_PROXIES", "127.0.0.1"), ("POSTS_FORWARDED_BY", "x_real_ip")];
    let server = Server::with(&proxy).await;
    let post = async |client: &str, pretended: &str, i: usize| {
        let post = format!(r#"{{"post":{{"nickname":"名前{i}","body":"投稿 {i} 番"}}}}"#);
        let request = Request::post("/api/posts").header("x-real-ip", client);
        server.send(request.header("x-forwarded-for", pretended), &post).await
    };
    post("192.0.2.1", "203.0.113.1", 1).await.is_created();
    post("192.0.2.1", "203.0.113.2", 2).await.is_limited();
    post("192.0.2.2", "203.0.113.1", 3).await.is_created();
}

#[tokio::test]
async fn an_ipv6_subscriber_is_one_address() {
    let server = Server::embedded().await;
    post(&server, "2001:db8:1:2::1", 1).await.is_created();
    post(&server, "2001:db8:1:2:ffff::1", 2).await.is_limited();
    post(&server, "2001:db8:1:3::1", 3).await.is_created();
}

#[tokio::test]
async fn with_a_secret_the_same_cooldowns_hold() {
    let secret = ("POSTS_HMAC_SECRET", "0123456789abcdef0123456789abcdef");
    let server = Server::with(&[("POSTS_TRUSTED_PROXIES", "127.0.0.1"), secret]).await;
    post(&server, "192.0.2.1", 1).await.is_created();
    post(&server, "192.0.2.1", 2).await.is_limited();
    post(&server, "192.0.2.2", 1).await.is_limited();
    post(&server, "192.0.2.2", 2).await.is_created();
}
