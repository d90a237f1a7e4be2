//! The outbox: events and their deliveries.

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_quota::{
    Backlog, Delivery, Leadership, LoggedEvent, QuotaEvent, QuotaEventLog, RepositoryError, Subject,
};

use super::{QuotaDatabase, commit, corrupt, leadership, to_json, unsigned};
use crate::{moment::Moment, row::Row, session::Session, statement::Statement};

/// Selects the columns of events that [`read`] needs.
macro_rules! events {
    ($which:literal) => {
        concat!(
            "SELECT seq, event_id, kind, policy_id, subject_type, subject_id, period, quota_limit, \
             used, alert_threshold_percent, occurred_at, reset_at FROM quota_events e ",
            $which
        )
    };
}

const BEFORE: &str = events!("WHERE seq < $1 ORDER BY seq DESC LIMIT $2");

const DELIVERIES: (&str, &str) = (
    "SELECT sink, event_id, delivered_at FROM quota_deliveries WHERE event_id IN
        (SELECT jsonb_array_elements_text(CAST($1 AS jsonb))) ORDER BY sink",
    "SELECT sink, event_id, delivered_at FROM quota_deliveries WHERE event_id IN
        (SELECT value FROM json_each($1)) ORDER BY sink",
);

const AFTER: &str = events!("WHERE seq > $1 ORDER BY seq LIMIT $2");

/// Condition for events that are not delivered to the sink `$1`.
macro_rules! undelivered {
    () => {
        "e.seq > coalesce((SELECT delivered_through FROM quota_sinks WHERE sink = $1), 0)
        AND NOT EXISTS (
            SELECT 1 FROM quota_deliveries d WHERE d.event_id = e.event_id AND d.sink = $1)"
    };
}

const UNDELIVERED: &str =
    concat!(events!("WHERE "), undelivered!(), " AND e.seq > $2 ORDER BY seq LIMIT $3");

const BACKLOG: &str = concat!(
    "SELECT count(*) AS total, min(occurred_at) AS oldest FROM quota_events e WHERE ",
    undelivered!()
);

/// The position through which all events are delivered. Positions are in the order of commits, so
/// no new event appears before the last one.
const THROUGH: &str = concat!(
    "SELECT coalesce(
        (SELECT min(e.seq) - 1 FROM quota_events e WHERE ",
    undelivered!(),
    "), (SELECT max(seq) FROM quota_events), 0) AS through"
);

const ADVANCE: (&str, &str) = (
    "INSERT INTO quota_sinks (sink, delivered_through) VALUES ($1, $2)
    ON CONFLICT (sink) DO UPDATE
        SET delivered_through = greatest(quota_sinks.delivered_through, $2)",
    "INSERT INTO quota_sinks (sink, delivered_through) VALUES ($1, $2)
    ON CONFLICT (sink) DO UPDATE
        SET delivered_through = max(quota_sinks.delivered_through, $2)",
);

/// Records deliveries; events that were deleted in the meantime are skipped.
const DELIVERED: (&str, &str) = (
    "INSERT INTO quota_deliveries (sink, event_id, delivered_at)
    SELECT $2, e.event_id, $3 FROM jsonb_array_elements_text(CAST($1 AS jsonb)) AS k(event_id)
    JOIN quota_events e ON e.event_id = k.event_id
    ON CONFLICT DO NOTHING",
    "INSERT INTO quota_deliveries (sink, event_id, delivered_at)
    SELECT $2, e.event_id, $3 FROM json_each($1) AS k
    JOIN quota_events e ON e.event_id = k.value WHERE true
    ON CONFLICT DO NOTHING",
);

#[async_trait]
impl QuotaEventLog for QuotaDatabase {
    async fn after(&self, seq: i64, max: u32) -> Result<Vec<LoggedEvent>, RepositoryError> {
        let after = Statement::new(AFTER).bind(seq).bind(max);
        events(self.database.reading().await?, after).await
    }

    async fn before(&self, seq: i64, max: u32) -> Result<Vec<LoggedEvent>, RepositoryError> {
        let before = Statement::new(BEFORE).bind(seq).bind(max);
        events(self.database.reading().await?, before).await
    }

    async fn deliveries(&self, event_ids: &[&str]) -> Result<Vec<Delivery>, RepositoryError> {
        let statement = Statement::either(DELIVERIES.0, DELIVERIES.1).bind(&*to_json(event_ids)?);
        let mut session = self.database.reading().await?;
        let rows = session.rows(statement).await?;
        session.commit().await?;
        let read = |row: &Row| {
            Ok(Delivery {
                event_id: row.get("event_id")?,
                sink: row.get("sink")?,
                at: row.time("delivered_at")?,
            })
        };
        rows.iter().map(|row| read(row).map_err(corrupt("a delivery"))).collect()
    }

    async fn undelivered(
        &self,
        sink: &str,
        seq: i64,
        max: u32,
    ) -> Result<Vec<LoggedEvent>, RepositoryError> {
        let undelivered = Statement::new(UNDELIVERED).bind(sink).bind(seq).bind(max);
        events(self.database.reading_for_server().await?, undelivered).await
    }

    async fn delivered(
        &self,
        sink: &str,
        event_ids: &[&str],
        at: Timestamp,
    ) -> Result<(), RepositoryError> {
        let mut session = self.database.writing().await?;
        let statement = Statement::either(DELIVERED.0, DELIVERED.1).bind(&*to_json(event_ids)?);
        session.execute(statement.bind(sink).bind(Moment::shown(at))).await?;
        if let Some(row) = session.row(Statement::new(THROUGH).bind(sink)).await? {
            let through: i64 = row.get("through").map_err(corrupt("an event"))?;
            let advance = Statement::either(ADVANCE.0, ADVANCE.1).bind(sink).bind(through);
            session.execute(advance).await?;
        }
        commit(session).await
    }

    async fn backlog(&self, sink: &str) -> Result<Backlog, RepositoryError> {
        let mut session = self.database.reading_for_server().await?;
        let row = session.row(Statement::new(BACKLOG).bind(sink)).await?;
        session.commit().await?;
        let Some(row) = row else {
            return Ok(Backlog::default());
        };
        let read = || {
            let oldest: Option<Moment> = row.get("oldest")?;
            Ok((row.get("total")?, oldest.map(|moment| moment.0)))
        };
        let (events, oldest) = read().map_err(corrupt("an event"))?;
        Ok(Backlog { events: unsigned(events), oldest })
    }

    async fn lead(&self, task: &str) -> Result<Option<Box<dyn Leadership>>, RepositoryError> {
        leadership::lead(&self.database, task).await
    }
}

async fn events(
    mut session: Session,
    statement: Statement,
) -> Result<Vec<LoggedEvent>, RepositoryError> {
    let rows = session.rows(statement).await?;
    session.commit().await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<LoggedEvent, RepositoryError> {
    let event_id: String = row.get("event_id").map_err(corrupt("an event"))?;
    let invalid =
        |why: &dyn std::fmt::Display| RepositoryError::Corrupt(format!("{event_id}: {why}"));
    let text = |column| row.get::<String>(column).map_err(|error| invalid(&error));
    let number = |column| row.get::<i64>(column).map_err(|error| invalid(&error));
    let time = |column| row.time(column).map_err(|error| invalid(&error));
    let threshold = row.get::<Option<i64>>("alert_threshold_percent");
    let threshold = threshold.map_err(|error| invalid(&error))?;
    let event = QuotaEvent {
        kind: text("kind")?.parse().map_err(|error| invalid(&error))?,
        quota_id: text("policy_id")?.parse().map_err(|error| invalid(&error))?,
        subject: Subject {
            kind: text("subject_type")?.parse().map_err(|error| invalid(&error))?,
            id: text("subject_id")?,
        },
        period: text("period")?.parse().map_err(|error| invalid(&error))?,
        limit: unsigned(number("quota_limit")?),
        used: unsigned(number("used")?),
        alert_threshold_percent: threshold.and_then(|percent| percent.try_into().ok()),
        at: time("occurred_at")?,
        reset_at: time("reset_at")?,
        event_id: event_id.clone(),
    };
    Ok(LoggedEvent { seq: number("seq")?, event })
}
