//! Validation of fields.

/// The value of a field in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input<T> {
    /// The field is missing: an update keeps the current value.
    #[default]
    Missing,
    /// The field is null: an update removes the current value.
    Null,
    /// A value.
    Given(T),
    /// A value of another type, which is named.
    WrongType(&'static str),
}

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Name of the field.
    pub field: &'static str,
    /// Machine-readable reason.
    pub reason: &'static str,
    /// Human-readable message.
    pub message: String,
}

/// Reads fields and collects errors.
#[derive(Debug, Default)]
pub struct FieldReader(Vec<FieldError>);

/// Reason and message of an invalid value, as in [`FieldError`].
pub type InvalidValue = (&'static str, String);

// === impl Input ===

impl<T> Input<T> {
    /// Returns the value, or `kept` if the field is missing.
    pub fn or(self, kept: Option<T>) -> Option<T> {
        match self {
            Self::Missing => kept,
            Self::Given(value) => Some(value),
            Self::Null | Self::WrongType(_) => None,
        }
    }
}

impl<T> From<T> for Input<T> {
    fn from(value: T) -> Self {
        Self::Given(value)
    }
}

// === impl FieldReader ===

impl FieldReader {
    /// Returns `value` if there were no errors.
    pub fn finish<T>(self, value: T) -> Result<T, Vec<FieldError>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }

    /// Returns all errors.
    pub fn errors(self) -> Vec<FieldError> {
        self.0
    }

    /// Adds an error that concerns several fields.
    pub fn add(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Returns the value of a required field.
    pub fn required<T, U>(
        &mut self,
        field: &'static str,
        input: Input<T>,
        kind: &str,
        parse: impl FnOnce(T) -> Result<U, InvalidValue>,
    ) -> Option<U> {
        if matches!(input, Input::Missing | Input::Null) {
            self.reject(field, ("required", format!("{field} is required")));
            return None;
        }
        self.read(field, input, kind, parse).or(None)
    }

    /// Returns the value of an optional field; [`Input::Null`] if it is invalid.
    pub fn read<T, U>(
        &mut self,
        field: &'static str,
        input: Input<T>,
        kind: &str,
        parse: impl FnOnce(T) -> Result<U, InvalidValue>,
    ) -> Input<U> {
        let invalid = match input {
            Input::Missing => return Input::Missing,
            Input::Null => return Input::Null,
            Input::WrongType(got) => ("wrong_type", format!("{field} must be {kind}, got {got}")),
            Input::Given(value) => match parse(value) {
                Ok(value) => return Input::Given(value),
                Err(invalid) => invalid,
            },
        };
        self.reject(field, invalid);
        Input::Null
    }

    fn reject(&mut self, field: &'static str, (reason, message): InvalidValue) {
        self.0.push(FieldError { field, reason, message });
    }
}
