use headgate_config::print_sections;
use serde::Deserialize;

/// Name, version and environment of this deployment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct AppConfig {
    /// `app.name`: the `service` label of every metric.
    pub name: String,
    /// `app.version`: the version of the deployment.
    pub version: String,
    /// `app.environment`: environment of the deployment, such as `production`.
    pub environment: String,
}

impl Default for AppConfig {
    fn default() -> Self {
        Self {
            name: "headgate".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            environment: "development".to_owned(),
        }
    }
}

// === impl Print ===

print_sections! {
    AppConfig { name, version, environment }
}
