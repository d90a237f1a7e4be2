//! A database that a newer release has migrated.

use headgate_testkit::{Postgres, require};

use crate::harness::{Server, http};

/// The value of a metric without labels of its own.
fn metric(metrics: &str, name: &str) -> i64 {
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name}{{")));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().expect("a number")
}

#[test]
fn a_server_warns_of_tables_that_are_newer_than_itself() {
    let postgres = require!(Postgres::shared());
    let variables = [("HEADGATE__DATABASE__URL", postgres.url())];
    let server = Server::start(&variables);
    super::backup::until_ready(&server);
    let ready = http(&server, "GET /readyz", &[], "");
    assert!(!ready.contains("schema"), "{ready}");
    drop(server);
    postgres.psql(
        "INSERT INTO headgate.headgate_migrations
         (version, description, success, checksum, execution_time)
         SELECT max(version) + 1, 'later', true, '', 0 FROM headgate.headgate_migrations",
    );

    let server = Server::start_with_log(&variables);
    super::backup::until_ready(&server);
    let metrics = http(&server, "GET /metrics", &[], "");
    let applied = metric(&metrics, "headgate_database_schema_version");
    let known = metric(&metrics, "headgate_database_schema_known_version");
    assert_eq!(applied, known + 1);
    let ready = http(&server, "GET /readyz", &[], "");
    let warning = format!(
        r#""schema":"warning: version {applied} is newer than version {known} of this server""#
    );
    assert!(ready.contains(r#""status":"ready""#) && ready.contains(&warning), "{ready}");
    let warning = format!("database schema {applied} is newer than schema {known} of this server");
    assert_eq!(server.log().matches(&warning).count(), 1, "{}", server.log());
}
