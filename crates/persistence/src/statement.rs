//! One statement in words that both databases understand.

use sqlx::{Postgres, Sqlite, postgres::PgArguments, query::Query, sqlite::SqliteArguments};

use crate::value::Value;

/// One statement in words that both databases understand, with `$1` for its first value.
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

    /// One statement that the databases do not say in the same words.
    pub(crate) fn either(on_postgres: &'static str, on_sqlite: &'static str) -> Self {
        Self { on_postgres, on_sqlite, values: Vec::new() }
    }

    /// Gives the next value.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Its words, whose verb and tables are the same on either.
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
            // People read it: the driver would keep its bytes.
            Value::Id(id) => query.bind(id.to_string()),
            Value::Time(time) => query.bind(time),
        })
    }
}
