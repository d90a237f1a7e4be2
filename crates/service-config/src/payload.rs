//! Whom a notification is about.

/// Where whoever writes a document tells of it.
pub const CHANNEL: &str = "cn_admin_config";

/// What is told: `<service>:<version>`.
pub fn payload(service: &str, version: i64) -> String {
    format!("{service}:{version}")
}

/// Whether `payload` is about `service`: the text before the colon says so. One that says nothing is
/// about everybody.
pub fn concerns(payload: &str, service: &str) -> bool {
    let named = payload.split(':').next().unwrap_or_default().trim();
    payload.trim().is_empty() || named.eq_ignore_ascii_case(service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_names_its_service() {
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
