//! Quota policies in the API.

use serde::Deserialize;

/// A stored policy.
#[derive(Debug, Deserialize)]
pub(super) struct Policy {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) subject_type: String,
    pub(super) subject_id: String,
    pub(super) limit: u64,
    pub(super) period: String,
    time_zone: Option<String>,
    pub(super) enabled: bool,
    alert_threshold_percent: Option<u8>,
    created_at: String,
    updated_at: String,
}

impl Policy {
    /// Type and id of the subject.
    pub(super) fn subject(&self) -> String {
        format!("{}:{}", self.subject_type, self.subject_id)
    }

    pub(super) fn fields(self) -> Vec<(&'static str, String)> {
        let subject = self.subject();
        let mut fields = vec![
            ("id", self.id),
            ("name", self.name),
            ("subject", subject),
            ("limit", self.limit.to_string()),
            ("period", self.period),
        ];
        fields.extend(self.time_zone.map(|zone| ("time zone", zone)));
        fields.push(("enabled", if self.enabled { "yes" } else { "no" }.to_owned()));
        fields.extend(self.alert_threshold_percent.map(|at| ("alert at", format!("{at} %"))));
        fields.extend([("created at", self.created_at), ("updated at", self.updated_at)]);
        fields
    }
}
