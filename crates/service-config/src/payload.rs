//! Notifications about changed documents.

/// Channel on which writers of documents notify services.
pub const CHANNEL: &str = "cn_admin_config";

/// Payload of a notification: `<service>:<version>`.
pub fn payload(service: &str, version: i64) -> String {
    format!("{service}:{version}")
}

/// Returns true if `payload` concerns `service`: the text before the colon names it. An empty
/// payload concerns every service.
pub fn concerns(payload: &str, service: &str) -> bool {
    let named = payload.split(':').next().unwrap_or_default().trim();
    payload.trim().is_empty() || named.eq_ignore_ascii_case(service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_concerns_the_service_it_names() {
        for (text, expected) in [
            ("", true),
            ("  ", true),
            ("relay", true),
            ("relay:12", true),
            (" ReLaY : 15", true),
            ("trust:7", false),
            ("relay-2:7", false),
            (":7", false),
        ] {
            assert_eq!(concerns(text, "relay"), expected, "{text:?}");
        }
        assert!(concerns(&payload("user-api", 3), "user-api"));
    }
}
