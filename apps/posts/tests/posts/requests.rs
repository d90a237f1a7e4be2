//! Format of requests.

use hyper::Request;

use crate::{harness::Server, on_every_store};

on_every_store!(a_malformed_request_is_a_bad_request, a_missing_post_is_not_found);

async fn a_malformed_request_is_a_bad_request(server: Server) {
    let bad = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        r#"{"post":null}"#,
        r#"{"post":{}}"#,
        r#"{"post":[]}"#,
        r#"{"post":"x"}"#,
        r#"{"nickname":"太郎","body":"テスト投稿"}"#,
        r#"{"post":{"nickname":7,"body":"テスト投稿"}}"#,
        r#"{"post":{"nickname":"太郎","body":["テスト投稿"]}}"#,
    ];
    for json in bad {
        let reply = server.post_json("192.0.2.1", json).await;
        assert_eq!(reply.status, 400, "{json}");
        reply.is_refused(400, "BAD_REQUEST", "リクエスト形式が正しくありません");
    }
    let large = format!(r#"{{"post":{{"nickname":"太郎","body":"{}"}}}}"#, "あ".repeat(10_000));
    assert_eq!(server.post_json("192.0.2.1", &large).await.status, 413);
    // None of these started a cooldown, and unknown fields are ignored.
    let extra = r#"{"post":{"nickname":"太郎","body":"テスト投稿","status":"scored","id":"x"}}"#;
    let reply = server.post_json("192.0.2.1", extra).await;
    reply.is_created();
    assert_eq!(reply.json()["status"], "judging");
}

async fn a_missing_post_is_not_found(server: Server) {
    for id in ["00000000-0000-4000-8000-000000000000", "nonsense"] {
        let reply = server.get(&format!("/api/posts/{id}")).await;
        reply.is_refused(404, "NOT_FOUND", "投稿が見つかりません");
    }
}

#[tokio::test]
async fn only_json_is_accepted() {
    let server = Server::embedded().await;
    let post = r#"{"post":{"nickname":"太郎","body":"テスト投稿"}}"#;
    for content_type in ["text/html", "text/plain", "application/x-www-form-urlencoded"] {
        let request = Request::post("/api/posts").header("content-type", content_type);
        let reply = server.send(request, post).await;
        let told = "Content-Typeはapplication/jsonにしてください";
        reply.is_refused(415, "UNSUPPORTED_MEDIA_TYPE", told);
    }
    let json =
        Request::post("/api/posts").header("content-type", "Application/JSON; charset=utf-8");
    server.send(json, post).await.is_created();
}

#[tokio::test]
async fn health_is_served() {
    let server = Server::embedded().await;
    for path in ["/health", "/api/health"] {
        let reply = server.get(path).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, r#"{"status":"ok"}"#));
    }
}
