//! A database in which one pattern has more windows than allowed.

use std::time::Duration;

use headgate_testkit::{Postgres, require, wait_until};

use crate::{backup::until_ready, harness::Server};

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(120);

const WARNING: &str = "2 rules ignored, such as ";

fn create(server: &Server, pattern: &str) {
    let arguments = ["--scope", "user", "--pattern", pattern, "--limit", "5", "--window", "60s"];
    server.json(&[&["rules", "create"], &arguments[..]].concat());
}

#[test]
fn ignored_rules_are_logged_once() {
    let postgres = require!(Postgres::shared());
    let variables = [
        ("HEADGATE__DATABASE__URL", postgres.url()),
        ("HEADGATE__RATELIMIT__REFRESH_INTERVAL_SECONDS", "1"),
    ];
    let server = Server::start(&variables);
    until_ready(&server);
    create(&server, "u1");
    postgres.psql(
        "INSERT INTO ratelimit.rate_limit_rules
         SELECT gen_random_uuid(), name, scope, identifier_pattern, limit_count, 1000 + n,
             algorithm, burst, fail_mode, enabled, created_at, updated_at
         FROM ratelimit.rate_limit_rules, generate_series(1, 9) AS n",
    );
    let server = Server::start_with_log(&variables);
    let count = |text: &str| server.log().matches(text).count();
    assert!(wait_until(LIMIT, || count(WARNING) == 1), "{}", server.log());

    // A refresh after another server's change does not repeat the warning.
    let rival = Server::start(&variables);
    create(&rival, "u2");
    let heard = || count("loaded revision 2 of the rules") == 1;
    assert!(wait_until(LIMIT, heard), "{}", server.log());
    assert_eq!(count(WARNING), 1, "{}", server.log());
}
