//! `headgate doctor` on the tables of PostgreSQL.

use headgate_testkit::{Postgres, require};

use super::Findings;
use crate::{backup::until_ready, harness::Server};

#[test]
fn tables_of_a_newer_release_are_a_warning_and_then_an_error() {
    let postgres = require!(Postgres::start());
    let url = postgres.url();
    let database = [("HEADGATE__DATABASE__URL", url.as_str())];
    let found = Findings::of(&database);
    found.find("ok", "database", "there are no tables yet");
    assert_eq!(postgres.psql("SELECT count(*) FROM pg_tables WHERE schemaname = 'headgate'"), "0");

    let server = Server::start(&database);
    until_ready(&server);
    drop(server);
    Findings::of(&database).find("ok", "database", "the newest that this program knows");
    let newer = "INSERT INTO headgate.headgate_migrations
        (version, description, success, checksum, execution_time)
        SELECT max(version) + 1, 'later', true, '', 0 FROM headgate.headgate_migrations";
    postgres.psql(newer);
    let found = Findings::of(&database);
    found.find("warning", "database", "and tolerates it");
    assert_eq!(found.code(), Some(0), "{found:?}");
    postgres.psql(newer);
    let found = Findings::of(&database);
    found.find("error", "database", "and refuses them");
    assert_eq!(found.code(), Some(1));
}

#[test]
fn missing_privileges_are_errors() {
    let postgres = require!(Postgres::start());
    let server = Server::start(&[("HEADGATE__DATABASE__URL", &postgres.url())]);
    until_ready(&server);
    drop(server);
    postgres.psql(
        "CREATE ROLE limited LOGIN; GRANT USAGE ON SCHEMA headgate, ratelimit, quota, cn_admin TO \
         limited; GRANT SELECT ON ALL TABLES IN SCHEMA headgate TO limited",
    );
    let url = format!("postgresql://limited@127.0.0.1:{}/{}", postgres.port(), postgres.database());
    let found = Findings::of(&[("HEADGATE__DATABASE__URL", &url)]);
    found.find("error", "database", "on table ratelimit.rate_limit_rules");
    found.find("error", "database", "refuses writes");
}

#[test]
fn an_encoding_that_lacks_characters_is_an_error_and_a_server_that_has_tables_warns() {
    let postgres = require!(Postgres::start());
    let url = postgres.url();
    let database = [("HEADGATE__DATABASE__URL", url.as_str())];
    let server = Server::start(&database);
    until_ready(&server);
    drop(server);
    postgres.psql(
        "UPDATE pg_database SET encoding = pg_char_to_encoding('LATIN1')
            WHERE datname = current_database()",
    );
    let found = Findings::of(&database);
    found.find("error", "database", "has the encoding LATIN1");
    assert_eq!(found.code(), Some(1));

    let server = Server::start_with_log(&database);
    until_ready(&server);
    let log = server.log();
    assert!(log.contains("encoding LATIN1 and refuses characters outside it"), "{log}");
}
