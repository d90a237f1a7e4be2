//! The resource that spans and exported metrics carry.

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;

use crate::AppConfig;

/// The name, version and environment of `app`, and the attributes in `OTEL_RESOURCE_ATTRIBUTES`.
pub(crate) fn of(app: &AppConfig) -> Resource {
    Resource::builder()
        .with_service_name(app.name.clone())
        .with_attribute(KeyValue::new("service.version", app.version.clone()))
        .with_attribute(KeyValue::new("deployment.environment.name", app.environment.clone()))
        .build()
}
