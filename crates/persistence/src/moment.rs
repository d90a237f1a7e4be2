//! Times with microseconds, as both databases store them.

use headgate::Timestamp;
use sqlx::{
    Decode, Encode, Postgres, Sqlite, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgTypeInfo, PgValueRef, types::Oid},
    sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef},
};

/// A time, stored as `timestamptz` or as microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) Timestamp);

/// The Unix epoch is this many microseconds before PostgreSQL's, the year 2000.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// The end of the year 9999 in microseconds, the latest time that is stored.
const LATEST: i64 = 253_402_300_799_999_999;

/// `timestamptz`.
const TIMESTAMPTZ: PgTypeInfo = PgTypeInfo::with_oid(Oid(1184));

impl Moment {
    /// Resolution of times in APIs in microseconds: a millisecond.
    pub(crate) const TICK: u64 = 1_000;

    /// Truncates `time` to milliseconds, as APIs show it, so that responses equal later reads.
    pub(crate) fn shown(time: Timestamp) -> Timestamp {
        Timestamp::from_micros(Self(time).micros().cast_unsigned() / Self::TICK * Self::TICK)
    }

    fn micros(self) -> i64 {
        i64::try_from(self.0.as_micros()).map_or(LATEST, |micros| micros.min(LATEST))
    }

    fn from_micros(micros: Option<i64>) -> Result<Self, BoxDynError> {
        match micros {
            Some(micros @ 0..=LATEST) => Ok(Self(Timestamp::from_micros(micros.cast_unsigned()))),
            _ => Err("not a time between 1970 and 9999".into()),
        }
    }
}

impl Type<Postgres> for Moment {
    fn type_info() -> PgTypeInfo {
        TIMESTAMPTZ
    }
}

impl Encode<'_, Postgres> for Moment {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode(self.micros() - POSTGRES_EPOCH, buffer)
    }
}

impl Decode<'_, Postgres> for Moment {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let micros: i64 = Decode::<Postgres>::decode(value)?;
        Self::from_micros(micros.checked_add(POSTGRES_EPOCH))
    }
}

impl Type<Sqlite> for Moment {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for Moment {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Sqlite>::encode(self.micros(), buffer)
    }
}

impl Decode<'_, Sqlite> for Moment {
    fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
        Self::from_micros(Some(Decode::<Sqlite>::decode(value)?))
    }
}
