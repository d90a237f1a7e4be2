//! Admission of posts, and the cost of refusals.

use serde_json::json;

use crate::{harness::Server, on_every_store};

on_every_store!(
    the_first_post_is_created_and_can_be_read,
    an_address_posts_once_in_five_minutes,
    a_nickname_posts_once_in_five_minutes,
    other_authors_are_not_limited,
    a_limited_author_gets_429_before_validation_errors,
    a_refused_post_starts_no_cooldown,
    a_malformed_request_is_refused_before_the_limit,
    spaces_around_a_nickname_do_not_bypass_its_cooldown,
    invisible_characters_in_a_nickname_do_not_bypass_its_cooldown,
    a_post_needs_a_nickname,
    the_api_cannot_clear_a_cooldown,
);

const INVALID: &str = "本文は3〜30文字で入力してください";

async fn the_first_post_is_created_and_can_be_read(server: Server) {
    let reply = server.post("192.0.2.1", "太郎", "テスト投稿").await;
    reply.is_created();
    let created = reply.json();
    assert_eq!(created.as_object().unwrap().len(), 2, "{created}");
    assert_eq!(created["status"], "judging");
    let id = created["id"].as_str().unwrap();
    let form = id.split('-').map(str::len).collect::<Vec<_>>();
    assert_eq!((form.as_slice(), &id[14..15]), ([8, 4, 4, 4, 12].as_slice(), "4"), "{id}");

    let shown = server.get(&format!("/api/posts/{id}")).await;
    assert_eq!(shown.status, 200);
    let expected = json!({
        "id": id, "nickname": "太郎", "body": "テスト投稿", "status": "judging",
        "created_at": "2100-01-01T00:00:00.000+00:00",
    });
    assert_eq!(shown.json(), expected);
}

async fn an_address_posts_once_in_five_minutes(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.post("192.0.2.1", "次郎", "次の投稿").await.is_limited();
    server.post("192.0.2.1", "太郎", "また投稿").await.is_limited();
}

async fn a_nickname_posts_once_in_five_minutes(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    let reply = server.post("192.0.2.2", "太郎", "次の投稿").await;
    reply.is_limited();
    assert_eq!(reply.retry_after(), Some(300));
    // The refusal started no cooldown of the address.
    server.post("192.0.2.2", "次郎", "次の投稿").await.is_created();
}

async fn other_authors_are_not_limited(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.post("192.0.2.2", "次郎", "次の投稿").await.is_created();
}

async fn a_limited_author_gets_429_before_validation_errors(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.post("192.0.2.1", "", "").await.is_limited();
    server.post("192.0.2.1", "次郎", "最初の投稿").await.is_limited();
    server.post("192.0.2.9", "太郎", "短").await.is_limited();
}

async fn a_refused_post_starts_no_cooldown(server: Server) {
    for _ in 0..3 {
        server.post("192.0.2.1", "太郎", "短").await.is_invalid(INVALID);
    }
    server.post("192.0.2.1", "太郎", "長い投稿").await.is_created();
}

async fn a_malformed_request_is_refused_before_the_limit(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    let reply = server.post_json("192.0.2.1", "{").await;
    reply.is_refused(400, "BAD_REQUEST", "リクエスト形式が正しくありません");
}

async fn spaces_around_a_nickname_do_not_bypass_its_cooldown(server: Server) {
    server.post("192.0.2.1", " 太郎 ", "最初の投稿").await.is_created();
    for (address, same) in [("192.0.2.2", "太郎"), ("192.0.2.3", "\u{3000}太郎\u{3000}")] {
        server.post(address, same, "次の投稿").await.is_limited();
    }
}

async fn invisible_characters_in_a_nickname_do_not_bypass_its_cooldown(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    for (address, same) in [("192.0.2.2", "太郎\u{200b}"), ("192.0.2.3", "\u{feff}太\u{fe0f}郎")]
    {
        server.post(address, same, "次の投稿").await.is_limited();
    }
}

async fn a_post_needs_a_nickname(server: Server) {
    let drafts =
        [r#"{"post":{"nickname":null,"body":"テスト投稿"}}"#, r#"{"post":{"body":"テスト投稿"}}"#];
    for draft in drafts {
        server.post_json("192.0.2.1", draft).await.is_invalid("ニックネームを入力してください");
    }
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    for draft in drafts {
        server.post_json("192.0.2.1", draft).await.is_limited();
    }
}

async fn the_api_cannot_clear_a_cooldown(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    let paths = ["/api/posts", "/api/posts/1", "/api/rate-limits", "/api/limits", "/health"];
    for path in paths {
        for method in ["DELETE", "PUT", "PATCH"] {
            let request = hyper::Request::builder().method(method).uri(path);
            let reply = server.send(request.header("x-forwarded-for", "192.0.2.1"), "").await;
            assert!([404, 405].contains(&reply.status.as_u16()), "{method} {path}: {reply:?}");
        }
    }
    server.post("192.0.2.1", "次郎", "次の投稿").await.is_limited();
}
