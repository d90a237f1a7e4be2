//! Statements as metrics count them: verb and table, never values.

use std::time::Duration;

use crate::migrations::SchemaVersion;

/// Verb and table of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// `select`, `insert`, `update`, `delete`, `commit` or `other`.
    pub name: &'static str,
    /// The first table of the statement; empty if there is none.
    pub table: &'static str,
}

/// Observes statements and the health of a database.
pub trait QueryObserver: Send + Sync {
    /// Called after each statement, in the task that made it, with the class of its error if it
    /// failed.
    fn answered(&self, query: Query, took: Duration, error: Option<&'static str>);

    /// Called when a write succeeds, or fails because the database cannot write.
    fn writable(&self, _is_writable: bool) {}

    /// Called after migrations.
    fn migrated(&self, _version: SchemaVersion) {}
}

/// All tables.
const TABLES: [&str; 19] = [
    "audit_log",
    "audit_logs",
    "denylist",
    "quota_deliveries",
    "quota_events",
    "quota_increments",
    "quota_policies",
    "quota_policy_deletions",
    "quota_reservations",
    "quota_sinks",
    "quota_usages",
    "rate_limit_override_changes",
    "rate_limit_overrides",
    "rate_limit_rule_changes",
    "rate_limit_rules",
    "revisions",
    "service_configs",
    "service_kinds",
    "service_states",
];

const VERBS: [&str; 4] = ["select", "insert", "update", "delete"];

// === impl Query ===

impl Query {
    /// The commit of a transaction.
    pub(crate) const COMMIT: Self = Self { name: "commit", table: "" };

    pub(crate) fn of(sql: &str) -> Self {
        let mut words = sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let verb = words.find(|word| !word.is_empty()).unwrap_or_default();
        let name = VERBS.into_iter().find(|known| known.eq_ignore_ascii_case(verb));
        let table = words.find_map(|word| TABLES.into_iter().find(|table| *table == word));
        Self { name: name.unwrap_or("other"), table: table.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_named_by_verb_and_first_table() {
        for (sql, name, table) in [
            ("SELECT revision FROM revisions WHERE name = 'quota_policies'", "select", "revisions"),
            ("\n    INSERT INTO audit_log (actor) VALUES ($1)", "insert", "audit_log"),
            ("UPDATE quota_usages AS u SET used = 0", "update", "quota_usages"),
            ("DELETE FROM quota_events WHERE seq IN (SELECT 1)", "delete", "quota_events"),
            (
                "SELECT k.id FROM json_each($1) AS k JOIN quota_policies p ON true",
                "select",
                "quota_policies",
            ),
            ("SELECT pg_notify($1, $2)", "select", ""),
            ("SELECT 1", "select", ""),
            ("VACUUM", "other", ""),
            ("", "other", ""),
        ] {
            assert_eq!(Query::of(sql), Query { name, table }, "{sql}");
        }
    }

    #[test]
    fn tables_of_all_migrations_are_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite");
        let mut made: Vec<String> = Vec::new();
        for file in std::fs::read_dir(folder).unwrap() {
            let sql = std::fs::read_to_string(file.unwrap().path()).unwrap();
            // A table that replaces another is renamed in the same file.
            let tables = sql.split("CREATE TABLE ").skip(1);
            let tables = tables.map(|rest| rest.split([' ', '(']).next().unwrap());
            let stays = |table: &&str| !sql.contains(&format!("ALTER TABLE {table} RENAME TO"));
            made.extend(tables.filter(stays).map(str::to_owned));
        }
        made.sort();
        assert_eq!(made, TABLES);
    }
}
