use std::borrow::Cow;

use headgate_ratelimit::FieldError;
use serde::Serialize;
use utoipa::ToSchema;

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::rest) struct Detail {
    #[schema(value_type = String)]
    field: Cow<'static, str>,
    /// Machine-readable reason.
    reason: &'static str,
    message: String,
}

impl Detail {
    pub(in crate::rest) fn new(field: &'static str, reason: &'static str, message: String) -> Self {
        Self { field: field.into(), reason, message }
    }

    /// A field whose name is only known at run time.
    pub(in crate::rest) fn at(field: String, reason: &'static str, message: String) -> Self {
        Self { field: field.into(), reason, message }
    }

    /// The same field of one item of a list.
    pub(in crate::rest) fn within(self, list: &str, index: usize) -> Self {
        Self { field: format!("{list}[{index}].{}", self.field).into(), ..self }
    }
}

impl From<FieldError> for Detail {
    fn from(error: FieldError) -> Self {
        Self::new(error.field, error.reason, error.message)
    }
}
