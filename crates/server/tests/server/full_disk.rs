//! A database on a full disk.

use std::time::Duration;

use headgate_testkit::{SmallDisk, require};
use serde_json::{Value, json};

use crate::harness::{RULES, Reply, Server};

/// More rules than fit on the disk.
const TOO_MANY: usize = 20_000;

async fn create(server: &Server, number: usize) -> Reply {
    let rule = json!({
        "scope": "user",
        "identifier_pattern": format!("u{number}"),
        "limit": 5,
        "window_seconds": 60,
    });
    server.admin("POST", RULES, &rule.to_string()).await
}

async fn readiness(server: &Server) -> Value {
    let reply = server.get("/readyz").await;
    assert_eq!(reply.status, 200);
    reply.json()
}

async fn is_writable(server: &Server) -> bool {
    let text = server.get("/metrics").await.text;
    let line = text.lines().find(|line| line.starts_with("headgate_database_writable{"));
    line.is_some_and(|line| line.ends_with(" 1"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_reports_a_full_disk_and_recovers() {
    let disk = require!(SmallDisk::mount(1024));
    let url = format!("sqlite://{}/headgate.db", disk.path().display());
    let server = Server::start(&[
        ("database.url", url.as_str()),
        ("ratelimit.refresh_interval_seconds", "1"),
    ])
    .await;
    assert_eq!(readiness(&server).await["checks"]["database"], "ok");
    assert!(is_writable(&server).await);

    let first = create(&server, 0).await;
    assert_eq!(first.status, 201, "{}", first.text);
    let mut acknowledged = vec![first.json()["id"].clone()];
    disk.fill();
    let refused = loop {
        let reply = create(&server, acknowledged.len()).await;
        if reply.status != 201 {
            break reply;
        }
        acknowledged.push(reply.json()["id"].clone());
        assert!(acknowledged.len() < TOO_MANY, "the disk has room for everything");
    };
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.json()["error"]["code"], "SYS_RATELIMIT_DATABASE_UNAVAILABLE");
    let body = readiness(&server).await;
    assert_eq!(body["status"], "degraded", "{body}");
    let database = body["checks"]["database"].as_str().unwrap();
    assert!(database.starts_with("error: cannot write: "), "{database}");
    assert!(!is_writable(&server).await);
    assert_eq!(server.admin("GET", RULES, "").await.status, 200, "reads go on");
    assert_eq!(server.check_user("u0").await.json()["limit"], 5);

    disk.free();
    let again = async {
        while readiness(&server).await["status"] != "ready" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), again).await.expect("it notices by itself");
    assert!(is_writable(&server).await);
    for number in 0..12 {
        let reply = create(&server, TOO_MANY + number).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
    }
    for id in acknowledged {
        let path = format!("{RULES}/{}", id.as_str().unwrap());
        assert_eq!(server.admin("GET", &path, "").await.status, 200, "{id} was acknowledged");
    }
    drop(server.stop());
}
