//! The version of the tables.

use sqlx::migrate::{AppliedMigration, Migrate};

use super::{MIGRATIONS, TABLE};
use crate::outage::Outage;

/// The version of a database's tables, and the newest that this program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersion {
    /// Last migration that was applied to the database.
    pub applied: i64,
    /// Last migration that this program has.
    pub known: i64,
}

// === impl SchemaVersion ===

impl SchemaVersion {
    /// Number of versions by which the tables may be newer than this program. A migration keeps
    /// everything that the version before it uses, which allows rolling upgrades.
    pub const TOLERATED: i64 = 1;

    /// Returns true if a newer program has changed the tables.
    pub const fn is_newer(self) -> bool {
        self.applied > self.known
    }

    /// Returns true if this program must not touch the tables.
    pub const fn is_too_new(self) -> bool {
        self.applied > self.known + Self::TOLERATED
    }

    /// Reads the version; fails if it is too new for this program.
    pub(super) async fn read(connection: &mut impl Migrate) -> Result<Self, Outage> {
        connection.ensure_migrations_table(TABLE).await?;
        let version = Self::of(&connection.list_applied_migrations(TABLE).await?);
        if version.is_too_new() { Err(Outage::TooNew(version)) } else { Ok(version) }
    }

    /// Returns the version of a database with these migrations.
    pub(crate) fn of(applied: &[AppliedMigration]) -> Self {
        Self::new(applied.iter().map(|migration| migration.version).max().unwrap_or_default())
    }

    /// Returns the version of a database whose last migration is `applied`.
    pub(crate) fn new(applied: i64) -> Self {
        Self { applied, known: Self::known() }
    }

    /// Returns the version after all known migrations.
    pub(super) fn migrated(self) -> Self {
        Self { applied: self.applied.max(self.known), ..self }
    }

    fn known() -> i64 {
        MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or_default()
    }
}
