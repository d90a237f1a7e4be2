//! The holders of places: listed, and ended by an operator.

use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use super::{ACQUIRE, code};
use crate::{
    backend::{Backend, on_both_backends},
    harness::{Reply, Server},
    redis::{PATIENT, ready},
};

const HOLDERS: &str = "/api/v1/ratelimit/holders";

on_both_backends!(
    holders_are_listed_with_the_ends_of_their_leases,
    an_operator_ends_a_lease_on_record,
    holders_of_rules_over_attributes_are_listed_by_attributes,
);

/// The ten characters of a lease's id by which it is listed.
fn handle(lease: &Value) -> &str {
    &lease["lease_id"].as_str().unwrap()["lease_".len()..][..10]
}

impl Server {
    async fn holders(&self, query: &str) -> Reply {
        self.admin("GET", &format!("{HOLDERS}?scope=service&identifier=export{query}"), "").await
    }

    async fn end(&self, holder: &str, body: &Value) -> Reply {
        self.admin("POST", &format!("{HOLDERS}/{holder}/end"), &body.to_string()).await
    }
}

async fn holders_are_listed_with_the_ends_of_their_leases(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let nothing = server.holders("").await;
    assert_eq!((nothing.status.as_u16(), nothing.json()), (200, json!({"rules": []})));
    let rule = server.limit_exports(3, 3600).await;
    let (late, soon) = (server.acquire(3600).await, server.acquire(600).await);

    let listed = server.holders("").await.json();
    let only = &listed["rules"][0];
    assert_eq!((&only["rule_id"], &only["subject"]), (&json!(rule), &json!("export")), "{only}");
    let counts = (&only["limit"], &only["taken"], &only["total"]);
    assert_eq!(counts, (&json!(3), &json!(2), &json!(2)), "{only}");
    for (i, (lease, most)) in [(&soon, 600_000), (&late, 3_600_000)].into_iter().enumerate() {
        let holder = &only["holders"][i];
        assert_eq!((&holder["holder"], &holder["places"]), (&json!(handle(lease)), &json!(1)));
        assert_eq!(holder["expires_at"], lease["expires_at"], "{only}");
        let left = holder["expires_in_ms"].as_u64().unwrap();
        assert!(left <= most && left > most - 300_000, "{only}");
    }
    let one = server.holders("&max=1").await.json();
    let listed = one["rules"][0]["holders"].as_array().unwrap();
    assert_eq!((listed.len(), &one["rules"][0]["total"]), (1, &json!(2)), "{one}");

    assert!(server.release(&soon).await);
    assert_eq!(server.holders("").await.json()["rules"][0]["taken"], 1);
    for query in ["&max=0", "&max=1001", "&max=x"] {
        let refused = server.holders(query).await;
        assert_eq!(refused.json()["error"]["details"][0]["field"], "max", "{}", refused.text);
    }
    let unnamed = server.admin("GET", HOLDERS, "").await;
    assert_eq!(unnamed.json()["error"]["details"].as_array().unwrap().len(), 2);
    assert_eq!(server.get(HOLDERS).await.status, 401);
}

async fn an_operator_ends_a_lease_on_record(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(1, 3600).await;
    let stuck = server.acquire(3600).await;
    let subject = json!({"scope": "service", "identifier": "export", "reason": "its host died"});
    let unknown = server.end("AAAAAAAAAA", &subject).await;
    assert_eq!(code(&unknown), (404, "SYS_RATELIMIT_LEASE_NOT_FOUND".to_owned()));
    assert_eq!(server.acquire(30).await["allowed"], false);

    let ended = server.end(handle(&stuck), &subject).await;
    assert_eq!(ended.json(), json!({"holder": handle(&stuck), "ended": true}), "{}", ended.text);
    let late = server.change_lease(&stuck, "renew").await;
    assert_eq!(code(&late), (409, "SYS_RATELIMIT_LEASE_ENDED".to_owned()));
    assert_eq!(server.acquire(30).await["allowed"], true);

    let log = server.admin("GET", "/api/v1/ratelimit/audit?action=lease.end", "").await.json();
    let entries = log["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{log}");
    assert_eq!(entries[0]["target"], "service:export");
    assert_eq!(entries[0]["reason"], "its host died");
    assert_eq!(entries[0]["before"], json!({"holder": handle(&stuck), "places": 1}), "{log}");
    let path = format!("{HOLDERS}/{}/end", handle(&stuck));
    assert_eq!(server.post(&path, &subject.to_string()).await.status, 401);
}

async fn holders_of_rules_over_attributes_are_listed_by_attributes(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server
        .create_rule(&json!({
            "scope": "attributes", "name": "exports of a tenant", "per": ["tenant"],
            "when": {"kind": "export"}, "limit": 2, "window_seconds": 600,
            "algorithm": "concurrency",
        }))
        .await;
    let attributes = |tenant: &str| json!({"attributes": {"tenant": tenant, "kind": "export"}});
    let held = server.post_value(ACQUIRE, &json!({"checks": [attributes("acme")]})).await.json();
    let list = async |tenant: &str| {
        server.admin("POST", HOLDERS, &attributes(tenant).to_string()).await.json()
    };
    let listed = list("acme").await;
    assert_eq!(listed["rules"][0]["holders"][0]["holder"], json!(handle(&held)), "{listed}");
    assert_eq!(listed["rules"][0]["rule_name"], "exports of a tenant");
    assert_eq!(list("other").await["rules"][0]["total"], 0);
    assert_eq!(server.end(handle(&held), &attributes("other")).await.status, 404);
    assert_eq!(server.end(handle(&held), &attributes("acme")).await.json()["ended"], true);
    assert_eq!(list("acme").await["rules"][0]["total"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn holders_are_unknown_while_the_store_is_away() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), PATIENT]).await;
    ready(&server).await;
    server.limit_exports(1, 60).await;
    let held = server.acquire(60).await;
    redis.kill();
    let away = server.holders("").await;
    assert_eq!(code(&away), (503, "SYS_RATELIMIT_STORE_UNAVAILABLE".to_owned()), "{}", away.text);
    let subject = json!({"scope": "service", "identifier": "export"});
    assert_eq!(server.end(handle(&held), &subject).await.status, 503);
}
