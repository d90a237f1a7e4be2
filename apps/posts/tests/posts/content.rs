//! Duplicates.

use std::time::Duration;

use crate::{
    harness::{Reply, Server},
    on_every_store,
};

on_every_store!(
    a_body_cannot_be_repeated_within_a_day,
    spelling_variants_are_duplicates,
    a_refused_duplicate_starts_no_cooldown,
);

#[track_caller]
fn is_duplicate(reply: &Reply) {
    reply.is_refused(422, "DUPLICATE_CONTENT", "同じ内容の投稿があります");
}

async fn a_body_cannot_be_repeated_within_a_day(server: Server) {
    server.post("192.0.2.1", "太郎", "ラーメン食べたい").await.is_created();
    is_duplicate(&server.post("192.0.2.2", "次郎", "ラーメン食べたい").await);
    server.clock.advance(Duration::from_secs(24 * 3600 - 1));
    is_duplicate(&server.post("192.0.2.1", "太郎", "ラーメン食べたい").await);
    server.clock.advance(Duration::from_secs(1));
    server.post("192.0.2.1", "太郎", "ラーメン食べたい").await.is_created();
}

async fn spelling_variants_are_duplicates(server: Server) {
    server.post("192.0.2.1", "太郎", "ラーメン Big 食べたい").await.is_created();
    let same = [
        "らーめん big 食べたい",
        "ﾗｰﾒﾝ ＢＩＧ 食べたい",
        "\u{3000}ラーメン\u{3000} Big\n食べたい ",
        "\u{200b}ラー\u{ad}メン Big\u{fe0f} 食\u{200d}べ\u{3164}たい\u{e0041}",
    ];
    for body in same {
        is_duplicate(&server.post("192.0.2.2", "次郎", body).await);
    }
    server.post("192.0.2.2", "次郎", "ラーメンBig食べたい").await.is_created();
}

async fn a_refused_duplicate_starts_no_cooldown(server: Server) {
    server.post("192.0.2.1", "太郎", "ラーメン食べたい").await.is_created();
    is_duplicate(&server.post("192.0.2.2", "次郎", "ラーメン食べたい").await);
    server.post("192.0.2.2", "次郎", "カレー食べたい").await.is_created();
}
