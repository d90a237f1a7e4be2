//! The client's address behind proxies.

use hyper::Request;

use crate::harness::{Reply, Server};

async fn post(server: &Server, forwarded_for: &str, i: usize) -> Reply {
    let post = format!(r#"{{"post":{{"nickname":"名前{i}","body":"投稿 {i} 番"}}}}"#);
    let request = Request::post("/api/posts").header("x-forwarded-for", forwarded_for);
    server.send(request, &post).await
}

#[tokio::test]
async fn without_trusted_proxies_the_socket_address_counts() {
    let server = Server::with(&[]).await;
    post(&server, "192.0.2.1", 1).await.is_created();
    post(&server, "192.0.2.2", 2).await.is_limited();
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_forwarded_address_counts() {
    let server = Server::embedded().await;
    post(&server, "203.0.113.1, 192.0.2.1", 1).await.is_created();
    // The client sent another address; the proxy appended the same.
    post(&server, "203.0.113.2, 192.0.2.1", 2).await.is_limited();
    post(&server, "203.0.113.1, 192.0.2.2", 3).await.is_created();
}

#[tokio::test]
async fn only_the_configured_header_of_a_proxy_is_trusted() {
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
async fn an_ipv6_network_is_one_address() {
    let server = Server::embedded().await;
    post(&server, "2001:db8:1:2::1", 1).await.is_created();
    post(&server, "2001:db8:1:2:ffff::1", 2).await.is_limited();
    post(&server, "2001:db8:1:3::1", 3).await.is_created();
}

#[tokio::test]
async fn cooldowns_work_with_a_secret() {
    let secret = ("POSTS_HMAC_SECRET", "0123456789abcdef0123456789abcdef");
    let server = Server::with(&[("POSTS_TRUSTED_PROXIES", "127.0.0.1"), secret]).await;
    post(&server, "192.0.2.1", 1).await.is_created();
    post(&server, "192.0.2.1", 2).await.is_limited();
    post(&server, "192.0.2.2", 1).await.is_limited();
    post(&server, "192.0.2.2", 2).await.is_created();
}
