//! The denylist over the admin API, on PostgreSQL and SQLite.

use std::time::Duration;

use hyper::Request;
use serde_json::{Value, json};
use tokio::time;

use super::harness::{PATIENCE, START, Server, UNREADABLE_ENTRY};

const HERE: &str = "203.0.113.7";
const PATH: &str = "/v1/admin/denylist";

/// Runs each test on SQLite and on PostgreSQL, with two nodes.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $test() {
                let folder = tempfile::tempdir().unwrap();
                let url = format!("sqlite://{}/node.db", folder.path().display());
                super::$test(super::Server::on(&url).await, super::Server::on(&url).await).await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test]
            async fn $test() {
                let database = tokio::task::spawn_blocking(headgate_testkit::Postgres::shared).await;
                let database = headgate_testkit::require!(database.unwrap());
                let url = database.url();
                super::$test(super::Server::on(url).await, super::Server::on(url).await).await;
            })+
        }
    };
}

on_both!(
    an_entry_is_written_listed_replaced_and_removed_and_every_change_is_audited,
    another_node_denies_soon,
    an_entry_ends_by_itself,
);

async fn put(server: &Server, body: &Value) -> super::harness::Reply {
    server.admin(Request::put(PATH), &body.to_string()).await
}

async fn deny(server: &Server, subject: &str, expires_at: Option<u64>) {
    let entry = json!({"subject": subject, "reason": "spam", "expires_at": expires_at});
    put(server, &entry).await.is(200);
}

async fn remove(server: &Server, subject: &str) -> super::harness::Reply {
    server.admin(Request::delete(format!("{PATH}?subject={subject}")), "").await
}

async fn items(server: &Server) -> Value {
    let reply = server.admin(Request::get(PATH), "").await;
    reply.is(200);
    reply.json()["items"].clone()
}

async fn an_entry_is_written_listed_replaced_and_removed_and_every_change_is_audited(
    server: Server,
    _: Server,
) {
    let entry = json!({"subject": "203.0.113.0/24", "reason": " open proxies "});
    let reply = put(&server, &entry).await;
    reply.is(200);
    let expected = json!({
        "subject": "203.0.113.0/24", "kind": "network", "reason": "open proxies",
        "expires_at": null, "created_at": START, "created_by": "admin",
    });
    assert_eq!(reply.json(), expected);
    let key = "AB".repeat(32);
    deny(&server, &key, Some(START + 60)).await;
    let listed = items(&server).await;
    assert_eq!(listed[0], expected);
    assert_eq!(
        (&listed[1]["subject"], &listed[1]["kind"], &listed[1]["expires_at"]),
        (&json!(key.to_lowercase()), &json!("pubkey"), &json!(START + 60))
    );
    deny(&server, "203.0.113.0/24", None).await;
    assert_eq!(items(&server).await[0]["reason"], "spam");

    remove(&server, "203.0.113.0/24").await.is(204);
    remove(&server, "203.0.113.0/24").await.is_refused(404, "NOT_FOUND");
    remove(&server, "nobody").await.is_refused(400, "INVALID_DENYLIST_ENTRY");
    assert_eq!(items(&server).await.as_array().unwrap().len(), 1);

    let query = "/v1/admin/audit-logs?target=denylist:203.0.113.0/24";
    let changes = server.admin(Request::get(query), "").await.json()["items"].clone();
    let changes: Vec<_> = changes.as_array().unwrap().iter().collect();
    let actions: Vec<_> = changes.iter().map(|change| &change["action"]).collect();
    assert_eq!(actions, ["denylist.remove", "denylist.put", "denylist.put"]);
    let diff = json!({
        "before": {"reason": "open proxies", "expires_at": null},
        "after": {"reason": "spam", "expires_at": null},
    });
    assert_eq!(changes[1]["diff_json"], diff);
    assert_eq!(changes[0]["diff_json"]["after"], Value::Null);
}

async fn another_node_denies_soon(one: Server, other: Server) {
    // Its first read of the list may be late on a busy machine.
    deny(&one, "198.51.100.99", None).await;
    let denied =
        async || other.get_from("198.51.100.99", "/v1/policies/current").await.status == 403;
    let found = time::timeout(PATIENCE, async {
        while !denied().await {
            time::sleep(Duration::from_millis(10)).await;
        }
    });
    found.await.expect("the list to be read");

    other.get_from(HERE, "/v1/policies/current").await.is(200);
    deny(&one, HERE, None).await;
    one.get_from(HERE, "/v1/policies/current").await.is_refused(403, "DENIED");
    let heard = async {
        while !other.node.denies_address(HERE.parse().unwrap()) {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    time::timeout(PATIENCE, heard).await.expect("the list to be read again");
    other.get_from(HERE, "/v1/policies/current").await.is_refused(403, "DENIED");
}

async fn an_entry_ends_by_itself(server: Server, _: Server) {
    deny(&server, HERE, Some(START + 10)).await;
    server.get_from(HERE, "/v1/policies/current").await.is_refused(403, "DENIED");
    server.clock.advance(Duration::from_secs(10));
    server.get_from(HERE, "/v1/policies/current").await.is(200);
    assert_eq!(items(&server).await, json!([]));
}

#[tokio::test]
async fn invalid_entries_are_refused_with_what_is_expected() {
    let server = Server::start().await;
    let cases = [
        (json!({"subject": "spammer", "reason": "x"}), "is not an IP address"),
        (json!({"subject": "203.0.113.7/24", "reason": "x"}), "write 203.0.113.0/24"),
        (json!({"subject": HERE, "reason": " "}), "reason must have 1 to 200 characters"),
        (json!({"subject": HERE, "reason": "x".repeat(201)}), "reason must have"),
        (json!({"subject": HERE, "reason": "a\u{7}b"}), "no control characters"),
        (json!({"subject": HERE, "reason": "x", "expires_at": START}), "in the future"),
    ];
    for (entry, expected) in cases {
        let reply = put(&server, &entry).await;
        reply.is_refused(400, "INVALID_DENYLIST_ENTRY");
        assert!(reply.text.contains(expected), "{}", reply.text);
    }
    put(&server, &json!({"subject": HERE})).await.is_refused(400, "INVALID_JSON");
    let entry = json!({"subject": HERE, "reason": "x"}).to_string();
    server.send(Request::put(PATH), &entry).await.is_refused(401, "AUTH_REQUIRED");
    assert_eq!(items(&server).await, json!([]));
}

#[tokio::test]
async fn a_denied_key_neither_signs_in_nor_uses_its_token() {
    let server = Server::start().await;
    let ada = server.client(1, HERE).await;
    let bob = server.client(2, HERE).await;
    ada.get("/v1/trending").await.is(200);
    deny(&server, &ada.pubkey(), None).await;
    ada.get("/v1/trending").await.is_refused(403, "DENIED");
    let ask = json!({"pubkey": ada.pubkey()});
    server.post(HERE, "/v1/auth/challenge", &ask).await.is_refused(403, "DENIED");
    bob.get("/v1/trending").await.is(200);
    remove(&server, &ada.pubkey()).await.is(204);
    ada.get("/v1/trending").await.is(200);
}

#[tokio::test]
async fn an_operator_can_undo_denying_everybody() {
    let server = Server::start().await;
    deny(&server, "0.0.0.0/0", None).await;
    server.get_from(HERE, "/v1/policies/current").await.is_refused(403, "DENIED");
    server.get_from(HERE, "/healthz").await.is(200);
    remove(&server, "0.0.0.0/0").await.is(204);
    server.get_from(HERE, "/v1/policies/current").await.is(200);
}

#[tokio::test]
async fn a_full_list_accepts_no_entry_until_one_has_ended() {
    let server = Server::start().await;
    deny(&server, "192.0.2.1", Some(START + 10)).await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)
        INSERT INTO denylist SELECT '10.0.' || (i / 256) || '.' || (i % 256), 'x', NULL, 0, 'test'
        FROM n";
    let url = format!("sqlite://{}", server.file().display());
    let mut console = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut console).await.unwrap();
    let entry = json!({"subject": HERE, "reason": "x"});
    put(&server, &entry).await.is_refused(409, "DENYLIST_FULL");
    deny(&server, "10.0.0.1", None).await;
    server.clock.advance(Duration::from_secs(10));
    put(&server, &entry).await.is(200);
    server.get_from("10.0.39.15", "/v1/policies/current").await.is_refused(403, "DENIED");
}

#[tokio::test]
async fn a_committed_change_succeeds_even_if_the_list_cannot_be_reloaded() {
    let server = Server::start().await;
    deny(&server, "198.51.100.99", None).await;
    let url = format!("sqlite://{}", server.file().display());
    let mut console = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql(UNREADABLE_ENTRY).execute(&mut console).await.unwrap();

    deny(&server, HERE, None).await;
    remove(&server, "198.51.100.99").await.is(204);
    server.get_from(HERE, "/v1/policies/current").await.is(200);

    let repair = "DELETE FROM denylist WHERE subject = '192.0.2.99'";
    sqlx::raw_sql(repair).execute(&mut console).await.unwrap();
    let caught_up = async {
        while !server.node.denies_address(HERE.parse().unwrap()) {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    time::timeout(PATIENCE, caught_up).await.expect("the list to be read again");
    server.get_from("198.51.100.99", "/v1/policies/current").await.is(200);
}
