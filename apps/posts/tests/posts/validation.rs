//! Validation of posts.

use crate::{harness::Server, on_every_store};

on_every_store!(
    lengths_are_counted_in_graphemes,
    surrounding_space_is_not_stored,
    joiners_of_emoji_are_stored,
);

const NO_NICKNAME: &str = "ニックネームを入力してください";
const LONG_NICKNAME: &str = "ニックネームは20文字以内で入力してください";
const NO_BODY: &str = "本文を入力してください";
const BODY_LENGTH: &str = "本文は3〜30文字で入力してください";

/// One character of seven code points, and one of two.
const FAMILY: &str = "👨‍👩‍👧‍👦";
const THUMB: &str = "👍🏽";

async fn lengths_are_counted_in_graphemes(server: Server) {
    let long = "あ".repeat(21);
    let emoji = |count: usize| format!("{FAMILY}{}", THUMB.repeat(count - 1));
    let refused = [
        ("", "テスト投稿", NO_NICKNAME),
        (" \u{3000}\t", "テスト投稿", NO_NICKNAME),
        ("\u{200b} \u{3164}", "テスト投稿", NO_NICKNAME),
        (&long, "テスト投稿", LONG_NICKNAME),
        // Three graphemes, but 21 code points, which count here.
        (&FAMILY.repeat(3), "テスト投稿", LONG_NICKNAME),
        ("太郎", "", NO_BODY),
        ("太郎", "\u{3000} \n", NO_BODY),
        ("太郎", "\u{200b}\u{feff} \u{200b}", NO_BODY),
        ("太郎", "ああ", BODY_LENGTH),
        ("太郎", "あ\u{200b}\u{ad}\u{200b}あ", BODY_LENGTH),
        ("太郎", " ああ\u{3000}", BODY_LENGTH),
        ("太郎", &emoji(2), BODY_LENGTH),
        ("太郎", &"あ".repeat(31), BODY_LENGTH),
        ("太郎", &emoji(31), BODY_LENGTH),
        ("", "", NO_NICKNAME),
        (&long, "短", LONG_NICKNAME),
    ];
    for (nickname, body, error) in refused {
        let reply = server.post("192.0.2.1", nickname, body).await;
        assert_eq!(reply.json()["error"], error, "{nickname:?} {body:?}");
        reply.is_invalid(error);
    }
    let accepted = [
        ("太", "あああ".to_owned()),
        (&"郎".repeat(20), "い".repeat(30)),
        ("三", emoji(3)),
        ("四", emoji(30)),
    ];
    for (i, (nickname, body)) in accepted.iter().enumerate() {
        server.post(&format!("198.51.100.{i}"), nickname, body).await.is_created();
    }
}

async fn surrounding_space_is_not_stored(server: Server) {
    let reply = server.post("192.0.2.1", "\u{3000}太 郎 ", " 中の 空白\u{3000}は残る\n").await;
    reply.is_created();
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    let shown = server.get(&format!("/api/posts/{id}")).await.json();
    assert_eq!(
        (&shown["nickname"], &shown["body"]),
        (&"太 郎".into(), &"中の 空白\u{3000}は残る".into())
    );
}

async fn joiners_of_emoji_are_stored(server: Server) {
    let reply = server.post("192.0.2.1", FAMILY, &FAMILY.repeat(3)).await;
    reply.is_created();
    let id = reply.json()["id"].as_str().unwrap().to_owned();
    let shown = server.get(&format!("/api/posts/{id}")).await.json();
    assert_eq!((&shown["nickname"], &shown["body"]), (&FAMILY.into(), &FAMILY.repeat(3).into()));
}
