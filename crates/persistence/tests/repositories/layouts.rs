//! Databases that servers with other settings or of other versions created.

use futures_util::future::join_all;
use headgate_persistence::{Database, DatabaseConfig, SchemaVersion};
use headgate_quota::{Draft, PolicyChange, QuotaPolicyRepository};
use headgate_ratelimit::{AuditFilter, AuditLog, Page, RateLimitRuleRepository, RepositoryError};
use headgate_testkit::require;

use crate::support::{Console, Home, TIMEOUT, author, create, on_both, run, spec};

on_both!(one_newer_schema_version_is_tolerated);

/// The migrations of the first release in which the schema was configurable.
const FIRST_MIGRATIONS: [(i64, &str, &str); 3] = [
    (1, "rules", include_str!("../../migrations/postgres/0001_rules.sql")),
    (2, "quotas", include_str!("../../migrations/postgres/0002_quotas.sql")),
    (3, "service_configs", include_str!("../../migrations/postgres/0003_service_configs.sql")),
];

const MIGRATIONS_TABLE: &str = "CREATE TABLE headgate_migrations (
    version BIGINT PRIMARY KEY, description TEXT NOT NULL,
    installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL,
    checksum BYTEA NOT NULL, execution_time BIGINT NOT NULL);";

fn configured(home: &Home, schema: &str) -> Database {
    let config = DatabaseConfig::from_url(&home.url()).unwrap().schema(schema).unwrap();
    Database::open(&config.max_connections(4).connect_timeout(TIMEOUT))
}

async fn console(home: &Home) -> Console {
    let mut console = home.console().await;
    console.run("RESET search_path").await;
    console
}

/// Creates a database as an earlier server with this schema did.
async fn create_with(home: &Home, schema: &str) {
    let mut console = console(home).await;
    for name in ["ratelimit", "quota", "cn_admin", schema] {
        console.run(&format!("CREATE SCHEMA IF NOT EXISTS {name}")).await;
    }
    console
        .run(&format!("SET search_path = {schema}, ratelimit, quota, cn_admin; {MIGRATIONS_TABLE}"))
        .await;
    for (version, name, sql) in FIRST_MIGRATIONS {
        console.run(sql).await;
        let noted = format!(
            "INSERT INTO headgate_migrations (version, description, success, checksum, execution_time)
             VALUES ({version}, '{name}', true, sha384(convert_to($sql${sql}$sql$, 'UTF8')), 1)"
        );
        console.run(&noted).await;
    }
}

/// Asserts that both share rules, quotas, revisions and audit log.
async fn assert_shared(one: &Database, other: &Database, name: &str) {
    let before = other.load().await.unwrap().0;
    let rule = create(one, spec(name, 60), 0).await;
    let (revision, rules) = other.load().await.unwrap();
    assert_eq!(revision.0, before.0 + 1, "{name}");
    assert!(rules.contains(&rule), "{name}");
    let filter = AuditFilter { target: Some(rule.id.to_string()), ..AuditFilter::default() };
    let page = Page::new(1, 10).unwrap();
    assert_eq!(other.entries(&filter, page).await.unwrap().total, 1, "{name}");

    let draft = Draft {
        name: name.to_owned().into(),
        subject_type: "tenant".to_owned().into(),
        subject_id: name.to_owned().into(),
        limit: 10.into(),
        period: "daily".to_owned().into(),
        ..Draft::default()
    };
    let create = PolicyChange::Create(draft.validate(None).unwrap());
    let policy = one.quotas().write(&create, &author(0)).await.unwrap();
    assert_eq!(other.quotas().get(&policy.id).await.unwrap(), Some(policy), "{name}");
}

#[test]
fn servers_with_different_schemas_share_a_database() {
    let home = require!(Home::postgres());
    run(async {
        let schemas = ["headgate", "quota", "ratelimit", "others"];
        let databases = schemas.map(|schema| configured(&home, schema));
        for database in &databases {
            database.migrate().await.unwrap();
        }
        for (database, schema) in databases.iter().zip(schemas) {
            assert_shared(database, &databases[0], &format!("from-{schema}")).await;
            assert_shared(&databases[0], database, &format!("to-{schema}")).await;
        }
    });
}

#[test]
fn servers_with_different_schemas_can_start_together() {
    let home = require!(Home::postgres());
    run(async {
        let schemas = ["quota", "headgate", "others", "quota", "headgate", "others"];
        let databases = schemas.map(|schema| configured(&home, schema));
        // Each has connections from before the schemas existed.
        join_all(databases.iter().map(Database::ping)).await;
        for migrated in join_all(databases.iter().map(Database::migrate)).await {
            migrated.unwrap();
        }
        for (number, database) in databases.iter().enumerate() {
            assert_shared(database, &databases[0], &format!("of-{number}")).await;
        }
    });
}

#[test]
fn existing_databases_keep_their_schema() {
    for made in ["headgate", "quota"] {
        let home = require!(Home::postgres());
        run(async {
            create_with(&home, made).await;
            // A server whose migration failed left an empty table of migrations.
            let left = if made == "quota" { "headgate" } else { "quota" };
            let mut console = console(&home).await;
            let left = format!("CREATE SCHEMA IF NOT EXISTS {left}; SET search_path = {left}");
            console.run(&format!("{left}; {MIGRATIONS_TABLE}")).await;

            let databases = ["headgate", "quota"].map(|schema| configured(&home, schema));
            for database in &databases {
                database.migrate().await.unwrap();
            }
            assert_shared(&databases[0], &databases[1], "one").await;
            assert_shared(&databases[1], &databases[0], "other").await;
            let rows = format!("UPDATE {made}.revisions SET revision = revision");
            assert!(console.run(&rows).await >= 2, "{made} keeps the revisions");
        });
    }
}

async fn one_newer_schema_version_is_tolerated(home: &Home) {
    let database = home.open();
    let SchemaVersion { applied, known } = database.migrate().await.unwrap();
    assert_eq!(applied, known);
    assert!(!database.schema_version().unwrap().is_newer());
    create(&database, spec("u1", 60), 0).await;

    let mut console = home.console().await;
    let next = async |console: &mut Console, version: i64| {
        let (value, checksum) = match home {
            Home::Sqlite(_) => ("1", "x'00'"),
            Home::Postgres(_) => ("true", "'\\x00'"),
        };
        let noted = format!(
            "INSERT INTO headgate_migrations (version, description, success, checksum, execution_time)
             VALUES ({version}, 'newer', {value}, {checksum}, 1)"
        );
        console.run(&noted).await;
    };
    next(&mut console, known + 1).await;
    let newer = home.open();
    let version = newer.migrate().await.unwrap();
    assert_eq!(version, SchemaVersion { applied: known + 1, known });
    assert!(version.is_newer() && newer.schema_version() == Some(version));
    create(&newer, spec("u2", 60), 1).await;

    next(&mut console, known + 2).await;
    let too_new = home.open();
    let refused = too_new.migrate().await.unwrap_err();
    assert!(matches!(refused, RepositoryError::Unavailable(_)), "{refused}");
    assert!(refused.to_string().contains("use a newer program"), "{refused}");
    // A running server continues, because it is about to be replaced.
    assert_eq!(database.load().await.unwrap().1.len(), 2);
}
