use serde_json::json;

use super::*;
use crate::SubjectType;

fn event(kind: EventKind, used: u64) -> QuotaEvent {
    let quota_id: QuotaId = "quota_01JABCDEF1234567890".parse().unwrap();
    QuotaEvent {
        event_id: QuotaEvent::id(&quota_id, "2026-02-23", kind),
        kind,
        quota_id,
        subject: Subject { kind: SubjectType::Tenant, id: "tenant-abc".to_owned() },
        period: QuotaPeriod::Daily,
        limit: 10_000,
        used,
        alert_threshold_percent: Some(80),
        at: Timestamp::from_micros(1_771_857_000_000_000),
        reset_at: Timestamp::from_micros(1_771_891_200_000_000),
    }
}

#[test]
fn exceeded_events_have_the_documented_json() {
    let expected = json!({
        "event_id": "quota_01JABCDEF1234567890:2026-02-23:exceeded",
        "event_type": "QUOTA_EXCEEDED",
        "quota_id": "quota_01JABCDEF1234567890",
        "subject_type": "tenant",
        "subject_id": "tenant-abc",
        "period": "daily",
        "limit": 10000,
        "used": 10001,
        "exceeded_at": "2026-02-23T14:30:00.000+00:00",
        "reset_at": "2026-02-24T00:00:00.000+00:00"
    });
    let json = serde_json::to_value(event(EventKind::Exceeded, 10_001)).unwrap();
    assert_eq!(json, expected);
}

#[test]
fn threshold_events_have_the_documented_json() {
    let expected = json!({
        "event_id": "quota_01JABCDEF1234567890:2026-02-23:threshold",
        "event_type": "QUOTA_THRESHOLD_REACHED",
        "quota_id": "quota_01JABCDEF1234567890",
        "subject_type": "tenant",
        "subject_id": "tenant-abc",
        "period": "daily",
        "limit": 10000,
        "used": 8002,
        "usage_percent": 80.02,
        "alert_threshold_percent": 80,
        "reached_at": "2026-02-23T14:30:00.000+00:00"
    });
    let json = serde_json::to_value(event(EventKind::ThresholdReached, 8_002)).unwrap();
    assert_eq!(json, expected);
}
