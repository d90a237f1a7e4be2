//! Headgate's database: rules, quotas, service documents and audit logs on PostgreSQL and SQLite.
//!
//! Both share most of the SQL. They differ in encodings of values (`value`, `moment`), in
//! migrations and in notifications (`listener`), which only PostgreSQL has.
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`DatabaseConfig`]: connection options |
//! | `database` | [`Database`]: connections, migrations, transactions |
//! | `rules`, `overrides`, `audit` | [`RateLimitRuleRepository`], [`OverrideRepository`] and [`AuditLog`] on a [`Database`] |
//! | `quotas` | [`QuotaDatabase`]: policies, ledger and outbox of quotas |
//! | `service_configs` | [`ServiceConfigDatabase`]: service documents, their audit log, states of instances |
//! | `session` | transactions; every statement has a timeout |
//! | `statement`, `value`, `moment`, `row` | parameters and results of statements |
//! | `watch`, `writes`, `cutoff` | health: result of the last write, retired connections |
//! | `query` | [`QueryObserver`]: durations of statements |
//! | `postgres`, `listener`, `sqlite`, `pool_size` | connections, and notifications of PostgreSQL |
//! | `migrations` | versioned tables; the SQL is in `migrations/` |
//! | `inspection` | [`DatabaseInspection`]: version, clock and privileges |
//! | `backup` | copies of a SQLite database, and restoring them |
//! | `outage` | errors, without credentials |
//!
//! On PostgreSQL, rules are in the schema `ratelimit`, quotas in `quota` and service documents in
//! `cn_admin`. Shared tables are in the schema that the first server was configured with, by
//! default `headgate`; all servers on one database use it. SQLite has no schemas.
//!
//! [`RateLimitRuleRepository`]: headgate_ratelimit::RateLimitRuleRepository
//! [`OverrideRepository`]: headgate_ratelimit::OverrideRepository
//! [`AuditLog`]: headgate_ratelimit::AuditLog
//!
//! ```
//! use headgate_persistence::{Database, DatabaseConfig};
//! use headgate_ratelimit::RateLimitRuleRepository;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Database::open(&DatabaseConfig::from_url("sqlite::memory:")?);
//! database.migrate().await?;
//! let (_revision, rules) = database.load().await?;
//! assert!(rules.is_empty());
//! # Ok(())
//! # }
//! ```

mod audit;
mod backup;
mod config;
mod cutoff;
mod database;
mod denylist;
mod inspection;
mod listener;
mod migrations;
mod moment;
mod outage;
mod overrides;
mod pool_size;
mod postgres;
mod query;
mod quotas;
mod row;
mod rules;
mod service_configs;
mod session;
mod sql;
mod sqlite;
mod statement;
mod total;
mod value;
mod watch;
mod writes;

pub use backup::{CopyError, DatabaseCopy};
pub use config::{DatabaseConfig, DatabaseConfigError, PostgresParts};
pub use database::Database;
pub use denylist::DenylistDatabase;
pub use inspection::DatabaseInspection;
pub use migrations::SchemaVersion;
pub use query::{Query, QueryObserver};
pub use quotas::{LedgerClock, QuotaDatabase};
pub use service_configs::ServiceConfigDatabase;
