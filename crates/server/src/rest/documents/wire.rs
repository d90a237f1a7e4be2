//! Documents as they are sent and shown.

use headgate::Timestamp;
use headgate_ratelimit::Input;
use headgate_service_config::{ServiceConfig, ServiceState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::rest::{
    error::{ApiError, Detail},
    field::Field,
    json::WireObject,
    time,
};

/// What a service is to run on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = ServiceDocumentDraft)]
pub(in crate::rest) struct WirePut<'a> {
    /// The document.
    #[serde(default)]
    #[schema(value_type = Object, required = true)]
    config: Value,
    /// The version that it replaces, 0 for none; whatever there is unless said.
    #[serde(borrow, default)]
    #[schema(value_type = Option<i64>, minimum = 0)]
    expected_version: Field<'a>,
}

/// What a service is to run on, and since when.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceDocument)]
pub(in crate::rest) struct WireDocument {
    service: &'static str,
    /// 0 where there is no document: the service runs on defaults.
    version: i64,
    /// What it says.
    #[schema(value_type = Object)]
    config: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    updated_by: Option<String>,
}

/// What one instance runs on.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceInstance)]
pub(in crate::rest) struct WireState {
    service: String,
    instance: String,
    /// None where it runs on safe defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<i64>,
    /// Where it has that from.
    source: String,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    seen_at: Timestamp,
}

impl<'a> WireObject<'a> for WirePut<'a> {
    fn problems(self) -> Vec<Detail> {
        self.read().map_err(ApiError::into_details).err().unwrap_or_default()
    }
}

impl WirePut<'_> {
    /// The document and the version that it replaces.
    pub(super) fn read(self) -> Result<(Value, Option<i64>), ApiError> {
        let mut wrong = Vec::new();
        if !self.config.is_object() {
            let message = "config must be an object".to_owned();
            wrong.push(Detail::new("config", "required", message));
        }
        let expected = match self.expected_version.into_number() {
            Input::Missing | Input::Null => None,
            Input::Given(version) if version >= 0 => Some(version),
            Input::Given(_) | Input::Wrong(_) => {
                let message = "expected_version must be a whole number of at least 0".to_owned();
                wrong.push(Detail::new("expected_version", "invalid", message));
                None
            }
        };
        if wrong.is_empty() { Ok((self.config, expected)) } else { Err(ApiError::Invalid(wrong)) }
    }
}

impl WireDocument {
    pub(super) fn new(service: &'static str, kept: Option<&ServiceConfig>) -> Self {
        let empty = || Value::Object(serde_json::Map::new());
        Self {
            service,
            version: kept.map_or(0, |kept| kept.version),
            config: kept.map_or_else(empty, |kept| kept.config.clone()),
            updated_at: kept.map(|kept| time::text(kept.updated_at)),
            updated_by: kept.map(|kept| kept.updated_by.clone()),
        }
    }
}

impl From<&ServiceState> for WireState {
    fn from(state: &ServiceState) -> Self {
        Self {
            service: state.service.clone(),
            instance: state.instance.clone(),
            version: state.version,
            source: state.source.clone(),
            seen_at: state.seen_at,
        }
    }
}
