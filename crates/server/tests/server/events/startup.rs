//! Invalid sinks and schedules are startup errors.

use headgate_server::Config;

#[track_caller]
fn is_refused(key: &str, value: &str, expected: &str) {
    let variable = format!("HEADGATE__{}", key.to_ascii_uppercase().replace('.', "__"));
    let error = Config::load(None, [(variable, value.to_owned())]).unwrap_err().to_string();
    assert!(error.contains(key) && error.contains(expected), "{key}: {error}");
}

#[test]
fn an_invalid_schedule_is_a_startup_error_that_names_the_key() {
    for key in ["quota.reset_schedule.daily", "quota.reset_schedule.monthly"] {
        is_refused(key, "0 0 * *", "expected 5 or 6 fields");
        is_refused(key, "61 0 * * *", "the minute must be 0 to 59");
        is_refused(key, "0 0 30 2 *", "schedule never fires (no such date)");
        is_refused(key, "midnight", r#"expected a cron expression such as "0 0 * * *""#);
        for fits in ["0 0 * * *", "30 0 0 * * *"] {
            let variable = format!("HEADGATE__{}", key.to_uppercase().replace('.', "__"));
            Config::load(None, [(variable, fits.to_owned())]).unwrap();
        }
    }
}

#[test]
fn an_invalid_event_setting_is_a_startup_error_that_names_the_key() {
    is_refused("kafka.brokers", "kafka", "expected host:port");
    is_refused("webhooks", "[{url: 'http://alerts.example', secret: 0123456789abcdef}]", ".url");
    is_refused("quota.retention.events_days", "0", "expected a whole number from 1 to 3650");
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_program_without_kafka_refuses_brokers() {
    is_refused("kafka.brokers", "kafka-0:9092", "--features kafka");
}
