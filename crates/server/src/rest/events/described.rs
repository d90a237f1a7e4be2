//! Schema of an event; `headgate_quota` serializes it.

use utoipa::ToSchema;

/// An event of a quota. Each type occurs once per policy and period.
#[derive(ToSchema)]
#[schema(as = Event)]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) struct EventDescription {
    /// Id of the event; the same for every delivery.
    event_id: String,
    event_type: EventType,
    quota_id: String,
    /// `tenant`, `user` or `api_key`.
    subject_type: String,
    subject_id: String,
    /// `daily` or `monthly`.
    period: String,
    limit: u64,
    used: u64,
    /// Of `QUOTA_EXCEEDED`: time of the event.
    #[schema(format = DateTime, nullable = false)]
    exceeded_at: Option<String>,
    /// Of `QUOTA_EXCEEDED`: end of the period.
    #[schema(format = DateTime, nullable = false)]
    reset_at: Option<String>,
    /// Of `QUOTA_THRESHOLD_REACHED`: usage in percent of the limit.
    #[schema(nullable = false)]
    usage_percent: Option<f64>,
    /// Of `QUOTA_THRESHOLD_REACHED`: the threshold in percent.
    #[schema(nullable = false)]
    alert_threshold_percent: Option<u8>,
    /// Of `QUOTA_THRESHOLD_REACHED`: time of the event.
    #[schema(format = DateTime, nullable = false)]
    reached_at: Option<String>,
}

/// Type of event.
#[derive(ToSchema)]
#[schema(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(dead_code, reason = "only described")]
pub(in crate::rest) enum EventType {
    QuotaExceeded,
    QuotaThresholdReached,
}
