//! What somebody has said.

use std::time::Duration;

use crate::{
    harness::{Reply, Server},
    on_every_store,
};

on_every_store!(
    nobody_says_what_was_said_within_a_day,
    however_it_is_typed_it_is_the_same,
    a_duplicate_costs_its_author_nothing,
);

#[track_caller]
fn is_duplicate(reply: &Reply) {
    reply.is_refused(422, "DUPLICATE_CONTENT", "同じ内容の投稿があります");
}

async fn nobody_says_what_was_said_within_a_day(server: Server) {
    server.post("192.0.2.1", "太郎", "ラーメン食べたい").await.is_created();
    is_duplicate(&server.post("192.0.2.2", "次郎", "ラーメン食べたい").await);
    server.clock.advance(Duration::from_secs(24 * 3600 - 1));
    is_duplicate(&server.post("192.0.2.1", "太郎", "ラーメン食べたい").await);
    server.clock.advance(Duration::from_secs(1));
    server.post("192.0.2.1", "太郎", "ラーメン食べたい").await.is_created();
}

async fn however_it_is_typed_it_is_the_same(server: Server) {
    server.post("192.0.2.1", "太郎", "ラーメン Big 食べたい").await.is_created();
    let same = [
        "らーめん big 食べたい",
        "ﾗｰﾒﾝ ＢＩＧ 食べたい",
        "\u{3000}ラーメン\u{3000} Big\n食べたい ",
    ];
    for body in same {
        is_duplicate(&server.post("192.0.2.2", "次郎", body).await);
    }
    server.post("192.0.2.2", "次郎", "ラーメンBig食べたい").await.is_created();
}

async fn a_duplicate_costs_its_author_nothing(server: Server) {
    server.post("192.0.2.1", "太郎", "ラーメン食べたい").await.is_created();
    is_duplicate(&server.post("192.0.2.2", "次郎", "ラーメン食べたい").await);
    server.post("192.0.2.2", "次郎", "カレー食べたい").await.is_created();
}
