//! The encoding of a PostgreSQL database.

use sqlx::PgConnection;
use tracing::warn;

use crate::outage::Outage;

/// The only encoding that has all characters.
const UTF8: &str = "UTF8";

/// Selects the encoding, and whether there are tables.
const ENCODING: &str =
    "SELECT current_setting('server_encoding'), to_regclass('revisions') IS NOT NULL";

/// Refuses a new database with an encoding that lacks characters: it would refuse request ids and
/// names with them. One that is in use stays in use, with a warning.
pub(super) async fn check(connection: &mut PgConnection) -> Result<(), Outage> {
    let (encoding, has_tables): (String, bool) =
        sqlx::query_as(ENCODING).fetch_one(connection).await?;
    if encoding == UTF8 {
        return Ok(());
    }
    if !has_tables {
        return Err(Outage::Encoding(encoding));
    }
    warn!(
        encoding,
        "the database has the encoding {encoding} and refuses characters outside it; move the \
         tables to a database with ENCODING 'UTF8'"
    );
    Ok(())
}
