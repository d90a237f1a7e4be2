//! Shared fragments of SQL.

/// Converts a column of microseconds to PostgreSQL's `timestamptz`.
///
/// Days and the rest of the day are converted separately: intervals are multiplied in floating
/// point, which does not have enough precision for the far future.
macro_rules! time {
    ($column:literal) => {
        concat!(
            "(timestamp 'epoch' + CAST(",
            $column,
            " / 86400000000 AS integer) * interval '1 day' + ",
            $column,
            " % 86400000000 * interval '1 microsecond') AT TIME ZONE 'UTC'"
        )
    };
}

pub(crate) use time;
