//! Headgate's database: rules, quotas, service documents and audit logs on PostgreSQL and SQLite.
//!
//! One set of SQL serves both. What differs is how values travel (`value`, `moment`), how tables
//! are made (`migrations`), and who can be heard (`listener`).
//!
//! | module | what it owns |
//! |---|---|
//! | `config` | [`DatabaseConfig`]: where the database is, and how patient to be with it |
//! | `database` | [`Database`]: opened without waiting, migrated, asked whether it is there |
//! | `rules`, `audit` | [`RateLimitRuleRepository`] and [`AuditLog`] on a [`Database`] |
//! | `quotas` | [`QuotaDatabase`]: policies, the ledger and the outbox of quotas |
//! | `service_configs` | [`ServiceConfigDatabase`]: service documents, their audit log, and who runs on what |
//! | `session` | a transaction on either database, every statement bounded in time |
//! | `statement`, `value`, `moment`, `row` | what goes to the database and what comes back |
//! | `watch`, `writes`, `cutoff` | what answers teach: whether writes succeed, which connections are retired |
//! | `query` | [`QueryObserver`]: who is told how long statements take |
//! | `postgres`, `listener`, `sqlite` | how each is connected to, and how PostgreSQL tells of changes |
//! | `migrations` | the tables, versioned; the SQL is in `migrations/` |
//! | `outage` | why the database does not answer, without what it was given to log in |
//!
//! On PostgreSQL, rules live in the schema `ratelimit`, quotas in `quota` and service documents in
//! `cn_admin`. Everything else is in one schema, which servers on one database share: the one that
//! the first of them was configured with, `headgate` by default. SQLite has no schemas.
//!
//! [`RateLimitRuleRepository`]: headgate_ratelimit::RateLimitRuleRepository
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
mod config;
mod cutoff;
mod database;
mod denylist;
mod listener;
mod migrations;
mod moment;
mod outage;
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
mod value;
mod watch;
mod writes;

pub use config::{ConfigError, DatabaseConfig, PostgresParts};
pub use database::Database;
pub use denylist::DenylistDatabase;
pub use migrations::SchemaVersion;
pub use query::{Query, QueryObserver};
pub use quotas::{LedgerClock, QuotaDatabase};
pub use service_configs::ServiceConfigDatabase;
