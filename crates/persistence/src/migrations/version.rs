//! The version of the tables.

use sqlx::migrate::Migrate;

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

    /// Reads the version; fails if it is too new for this program.
    pub(super) async fn read(connection: &mut impl Migrate) -> Result<Self, Outage> {
        connection.ensure_migrations_table(TABLE).await?;
        let applied = connection.list_applied_migrations(TABLE).await?;
        let applied = applied.iter().map(|migration| migration.version).max().unwrap_or_default();
        let version = Self { applied, known: Self::known() };
        if version.applied > version.known + Self::TOLERATED {
            return Err(Outage::TooNew(version));
        }
        Ok(version)
    }

    /// Returns the version after all known migrations.
    pub(super) fn migrated(self) -> Self {
        Self { applied: self.applied.max(self.known), ..self }
    }

    fn known() -> i64 {
        MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or_default()
    }
}
