//! Pieces of SQL that several statements share.

/// A time as PostgreSQL keeps it, from a column of microseconds.
///
/// Days and the rest of the day apart: an interval is multiplied as a floating-point number, which
/// does not hold all microseconds of the far future.
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
