//! Rows of results.

use headgate::Timestamp;
use sqlx::{
    Decode, Postgres, Row as _, Sqlite, Type, error::BoxDynError, postgres::PgRow,
    sqlite::SqliteRow,
};
use uuid::Uuid;

use crate::moment::Moment;

/// A row of a result.
pub(crate) enum Row {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

/// A type that both databases can decode.
pub(crate) trait Readable:
    for<'r> Decode<'r, Postgres> + Type<Postgres> + for<'r> Decode<'r, Sqlite> + Type<Sqlite>
{
}

impl<T> Readable for T where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres> + for<'r> Decode<'r, Sqlite> + Type<Sqlite>
{
}

// === impl Row ===

impl Row {
    /// Returns the value of `column`.
    pub(crate) fn get<T: Readable>(&self, column: &str) -> Result<T, sqlx::Error> {
        match self {
            Self::Postgres(row) => row.try_get(column),
            Self::Sqlite(row) => row.try_get(column),
        }
    }

    /// Returns the id in `column`.
    pub(crate) fn id(&self, column: &str) -> Result<Uuid, sqlx::Error> {
        match self {
            Self::Postgres(row) => row.try_get(column),
            Self::Sqlite(row) => {
                let text: &str = row.try_get(column)?;
                let invalid = |error: uuid::Error| sqlx::Error::Decode(BoxDynError::from(error));
                Uuid::try_parse(text).map_err(invalid)
            }
        }
    }

    /// Returns the time in `column`.
    pub(crate) fn time(&self, column: &str) -> Result<Timestamp, sqlx::Error> {
        self.get::<Moment>(column).map(|moment| moment.0)
    }
}
