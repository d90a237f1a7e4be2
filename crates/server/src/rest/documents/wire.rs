//! JSON of documents.

use headgate::Timestamp;
use headgate_ratelimit::Input;
use headgate_service_config::{ServiceConfig, ServiceState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::catalog::ServiceCatalog;
use crate::rest::{
    error::{ApiError, Detail},
    field::Field,
    json_body::WireObject,
    time,
    unique_json::UniqueJson,
};

/// A document to be stored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = ServiceDocumentDraft)]
pub(in crate::rest) struct WirePut<'a> {
    /// The document.
    #[serde(default)]
    #[schema(value_type = Object, required = true)]
    config: UniqueJson,
    /// Version that it replaces, 0 for none; any if it is missing.
    #[serde(borrow, default)]
    #[schema(value_type = Option<i64>, minimum = 0)]
    expected_version: Field<'a>,
}

/// A service's document.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceDocument)]
pub(in crate::rest) struct WireDocument {
    service: String,
    /// 0 if there is no document: the service runs on defaults.
    version: i64,
    /// The document.
    #[schema(value_type = Object)]
    config: Value,
    /// True if the service registered its kind of document; otherwise fields are not validated here.
    registered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    updated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    updated_by: Option<String>,
}

/// The document that one instance runs on.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceInstance)]
pub(in crate::rest) struct WireState {
    service: String,
    instance: String,
    /// Missing if it runs on safe defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    version: Option<i64>,
    /// Source of its settings.
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
    /// Returns the document and the version that it replaces.
    pub(super) fn read(self) -> Result<(Value, Option<i64>), ApiError> {
        let mut wrong = Vec::new();
        if !self.config.0.is_object() {
            let message = "config must be an object".to_owned();
            wrong.push(Detail::new("config", "required", message));
        }
        let expected = match self.expected_version.into_number() {
            Input::Missing | Input::Null => None,
            Input::Given(version) if version >= 0 => Some(version),
            Input::Given(_) | Input::WrongType(_) => {
                let message = "expected_version must be a whole number of at least 0".to_owned();
                wrong.push(Detail::new("expected_version", "invalid", message));
                None
            }
        };
        if wrong.is_empty() { Ok((self.config.0, expected)) } else { Err(ApiError::Invalid(wrong)) }
    }
}

impl WireDocument {
    /// The document of `service`, or an empty one.
    pub(super) fn of(service: &str, catalog: &ServiceCatalog) -> Self {
        Self::new(service, catalog.document(service), catalog.is_registered(service))
    }

    pub(super) fn new(service: &str, stored: Option<&ServiceConfig>, registered: bool) -> Self {
        let empty = || Value::Object(serde_json::Map::new());
        Self {
            service: service.to_owned(),
            version: stored.map_or(0, |stored| stored.version),
            config: stored.map_or_else(empty, |stored| stored.config.clone()),
            registered,
            updated_at: stored.map(|stored| time::text(stored.updated_at)),
            updated_by: stored.map(|stored| stored.updated_by.clone()),
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
