//! Many rules: incremental reloads, exact pages, and the maximum number.

use std::time::Duration;

use headgate_testkit::{Postgres, require};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};
use tonic::Code;

use crate::{
    grpc::client::{by, connect, rule_of},
    harness::{RULES, Server},
};

const PATIENCE: Duration = Duration::from_secs(120);

fn rule(pattern: &str, limit: i64) -> Value {
    json!({"scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": 60})
}

fn list(count: usize) -> String {
    let rules: Vec<Value> = (0..count).map(|i| rule(&format!("u{i}"), 5)).collect();
    json!({"rules": rules}).to_string()
}

/// Number of rules read by incremental and by full reloads.
async fn read(server: &Server) -> (u64, u64) {
    let text = server.get("/metrics").await.text;
    let of = |how: &str| {
        let series = format!("headgate_rules_read_total{{how=\"{how}\"");
        let line = text.lines().find(|line| line.starts_with(&series)).expect("the series");
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    (of("changes"), of("all"))
}

async fn limit_of(server: &Server, identifier: &str) -> u64 {
    let body = json!({"scope": "user", "identifier": identifier, "dry_run": true}).to_string();
    server.post(crate::harness::CHECK, &body).await.json()["limit"].as_u64().unwrap()
}

async fn until(fits: impl AsyncFn() -> bool) {
    let waiting = async {
        while !fits().await {
            // The other server is notified in its own time.
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_reads_what_it_changes() {
    let postgres = require!(Postgres::shared());
    let keys = [("database.url", postgres.url()), ("server.request_timeout_seconds", "600")];
    let one = Server::start(&keys).await;
    assert_eq!(one.admin("PUT", RULES, &list(3_000)).await.status, 200);
    // A server that starts later reads all, once.
    let other = Server::start(&keys).await;
    assert_eq!(read(&other).await, (0, 3_000));
    let before = read(&one).await;

    let id = one.create_rule(&rule("new", 7)).await;
    assert_eq!(limit_of(&one, "new").await, 7);
    until(async || limit_of(&other, "new").await == 7).await;
    let path = format!("{RULES}/{id}");
    assert_eq!(one.admin("PUT", &path, &rule("new", 8).to_string()).await.status, 200);
    until(async || limit_of(&other, "new").await == 8).await;
    assert_eq!(one.admin("DELETE", &path, "").await.status, 204);
    until(async || limit_of(&other, "new").await == 100).await;

    assert_eq!(read(&one).await, (before.0 + 3, before.1));
    assert_eq!(read(&other).await, (3, 3_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_12_000_rules_are_exact() {
    let server = Server::start(&[("server.request_timeout_seconds", "600")]).await;
    let plan = server.admin("PUT", RULES, &list(12_000)).await;
    assert_eq!(plan.status, 200, "{}", &plan.text[..plan.text.len().min(300)]);
    assert_eq!(plan.json()["created"].as_array().unwrap().len(), 12_000);
    assert_eq!((limit_of(&server, "u11999").await, limit_of(&server, "else").await), (5, 100));

    let page =
        async |query: &str| server.admin("GET", &format!("{RULES}?{query}"), "").await.json();
    let last = page("page=120&page_size=100").await;
    assert_eq!(last["rules"].as_array().unwrap().len(), 100);
    assert_eq!(last["pagination"]["total_count"], 12_000);
    assert_eq!(last["pagination"]["has_next"], false);
    let first = page("page=1&page_size=1").await;
    assert_eq!(first["pagination"]["has_next"], true);
    assert_eq!(first["revision"], last["revision"]);
    let found = page("search=U1199&page_size=3").await;
    // u1199 and u11990 to u11999.
    assert_eq!(found["pagination"]["total_count"], 11);
    // A list that changes one rule of them changes one.
    let mut body: Value = serde_json::from_str(&list(12_000)).unwrap();
    body["rules"][7]["limit"] = json!(6);
    let plan = server.admin("PUT", RULES, &body.to_string()).await.json();
    assert_eq!(
        (&plan["unchanged"], plan["updated"].as_array().unwrap().len()),
        (&json!(11_999), 1)
    );
    assert_eq!(limit_of(&server, "u7").await, 6);
}

#[tokio::test]
async fn one_rule_too_many_is_refused_on_every_surface() {
    let server = Server::start(&[("ratelimit.max_rules", "2")]).await;
    server.create_rule(&rule("u0", 5)).await;
    server.create_rule(&rule("u1", 5)).await;
    let too_many = "there may be at most 2 rules; delete rules that are not needed, match several \
                subjects with one prefix*, or raise ratelimit.max_rules";
    let one = rule("u2", 5);
    let lists = [true, false].map(|dry_run| json!({"rules": [one], "dry_run": dry_run}));
    for (method, body) in [("POST", &one), ("PUT", &lists[0]), ("PUT", &lists[1])] {
        let refused = server.admin(method, RULES, &body.to_string()).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        let error = refused.json()["error"].clone();
        assert_eq!(error["code"], "SYS_RATELIMIT_TOO_MANY_RULES");
        assert_eq!(error["message"], too_many);
    }
    let details = server.admin("PUT", RULES, &list(3)).await.details();
    let expected = "rules must have at most 2 items (ratelimit.max_rules)";
    assert_eq!(details, [("rules".to_owned(), expected.to_owned())]);

    let token = server.admin_token.clone().unwrap();
    let client = connect(server.grpc_address).await;
    let refused = client.clone().create_rule(by(&token, rule_of("user:u2"))).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::ResourceExhausted, too_many));
    // One in the place of another is not one more.
    let swap = json!({"rules": [rule("u1", 5), one], "prune": true}).to_string();
    assert_eq!(server.admin("PUT", RULES, &swap).await.status, 200);
}

#[tokio::test]
async fn without_a_token_nothing_of_a_long_list_is_read() {
    let server = Server::start(&[("server.request_timeout_seconds", "3600")]).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "PUT {RULES} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: 60000000\r\n\r\n"
    );
    // The body never comes.
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut answer)).await.expect("an answer").unwrap();
    assert_eq!(&answer, b"HTTP/1.1 401");
}
