//! Errors while the database or the store is down.

use headgate_testkit::{Postgres, require};
use tonic::Code;

use super::client::{
    CheckRateLimitRequest, GetRuleRequest, ResetLimitRequest, assert_error, by, connect, create,
    rule_of,
};
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_checks_continue_and_rules_fail() {
    let postgres = require!(Postgres::start());
    let url = postgres.url();
    let keys = [("database.url", url.as_str()), ("database.connect_timeout_seconds", "5")];
    let server = Server::start(&keys).await;
    let client = connect(server.grpc_address).await;
    let token = server.admin_token.clone().unwrap();
    let rule = create(&client, &token, rule_of("user:u1")).await;
    postgres.stop();

    let message = "the database cannot be reached: nothing was changed, try again later";
    let made = client.clone().create_rule(by(&token, rule_of("user:u2"))).await.unwrap_err();
    let shown = GetRuleRequest { rule_id: rule.id.clone() };
    let shown = client.clone().get_rule(by(&token, shown)).await.unwrap_err();
    for status in [made, shown] {
        assert_error(&status, Code::Unavailable, "SYS_RATELIMIT_DATABASE_UNAVAILABLE", message);
    }
    let check = CheckRateLimitRequest {
        rule_id: rule.id,
        subject: "u1".into(),
        ..CheckRateLimitRequest::default()
    };
    let answer = client.clone().check_rate_limit(check).await.unwrap().into_inner();
    assert_eq!((answer.allowed, answer.limit), (true, 5));
}

#[tokio::test]
async fn a_reset_without_the_store_has_an_unknown_outcome() {
    let server = Server::start(&[("redis.url", "redis://127.0.0.1:1")]).await;
    let client = connect(server.grpc_address).await;
    let reset =
        ResetLimitRequest { scope: "user".into(), identifier: "u1".into(), reason: String::new() };
    let reset = by(server.admin_token.as_deref().unwrap(), reset);
    let status = client.clone().reset_limit(reset).await.unwrap_err();
    let message = "the store of counters did not answer: the counter may or may not have been reset, ask again";
    assert_error(&status, Code::Unavailable, "SYS_RATELIMIT_STORE_UNAVAILABLE", message);
}
