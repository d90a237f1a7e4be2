//! Statements with parameters, for both databases.

use sqlx::{Postgres, Sqlite, postgres::PgArguments, query::Query, sqlite::SqliteArguments};

use crate::value::Value;

/// A statement for both databases, with `$1` for its first parameter.
#[derive(Debug)]
pub(crate) struct Statement {
    on_postgres: &'static str,
    on_sqlite: &'static str,
    values: Vec<Value>,
}

// === impl Statement ===

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self::either(sql, sql)
    }

    /// Creates a statement with different SQL for each database.
    pub(crate) fn either(on_postgres: &'static str, on_sqlite: &'static str) -> Self {
        Self { on_postgres, on_sqlite, values: Vec::new() }
    }

    /// Binds the next parameter.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Returns the SQL; verb and tables are the same for both databases.
    pub(crate) const fn sql(&self) -> &'static str {
        self.on_postgres
    }

    pub(crate) fn for_postgres(self) -> Query<'static, Postgres, PgArguments> {
        let query = sqlx::query(self.on_postgres);
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Text(text) => query.bind(text),
            Value::Number(number) => query.bind(number),
            Value::Flag(flag) => query.bind(flag),
            Value::Id(id) => query.bind(id),
            Value::Time(time) => query.bind(time),
        })
    }

    pub(crate) fn for_sqlite(self) -> Query<'static, Sqlite, SqliteArguments> {
        let query = sqlx::query(self.on_sqlite);
        self.values.into_iter().fold(query, |query, value| match value {
            Value::Text(text) => query.bind(text),
            Value::Number(number) => query.bind(number),
            Value::Flag(flag) => query.bind(flag),
            // Stored as text, so that it is readable; the driver would store bytes.
            Value::Id(id) => query.bind(id.to_string()),
            Value::Time(time) => query.bind(time),
        })
    }
}
