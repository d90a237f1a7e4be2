//! Fields before anybody knows whether they fit, and everything that does not.

/// What was sent for one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input<T> {
    /// Nothing: where there is something already, what it says stays.
    #[default]
    Missing,
    /// Expressly nothing: what is there says is taken back.
    Null,
    /// A value.
    Given(T),
    /// A value of another kind; says which.
    Wrong(&'static str),
}

/// A field that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Which one.
    pub field: &'static str,
    /// Why, for programs.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

/// Collects what does not fit while fields are read.
#[derive(Debug, Default)]
pub struct Reader(Vec<FieldError>);

/// Why a value does not fit: for programs, and for people.
pub type Refusal = (&'static str, String);

// === impl Input ===

impl<T> Input<T> {
    /// The value, or what is `kept` where nothing was sent.
    pub fn or(self, kept: Option<T>) -> Option<T> {
        match self {
            Self::Missing => kept,
            Self::Given(value) => Some(value),
            Self::Null | Self::Wrong(_) => None,
        }
    }
}

impl<T> From<T> for Input<T> {
    fn from(value: T) -> Self {
        Self::Given(value)
    }
}

// === impl Reader ===

impl Reader {
    /// `value`, unless something did not fit.
    pub fn finish<T>(self, value: T) -> Result<T, Vec<FieldError>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }

    /// Everything that did not fit.
    pub fn errors(self) -> Vec<FieldError> {
        self.0
    }

    /// Notes what does not fit although each field does.
    pub fn add(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// The value of a field that must be there.
    pub fn required<T, U>(
        &mut self,
        field: &'static str,
        input: Input<T>,
        kind: &str,
        parse: impl FnOnce(T) -> Result<U, Refusal>,
    ) -> Option<U> {
        if matches!(input, Input::Missing | Input::Null) {
            self.refuse(field, ("required", format!("{field} is required")));
            return None;
        }
        self.read(field, input, kind, parse).or(None)
    }

    /// What a field says. One that does not fit says nothing more: it was refused.
    pub fn read<T, U>(
        &mut self,
        field: &'static str,
        input: Input<T>,
        kind: &str,
        parse: impl FnOnce(T) -> Result<U, Refusal>,
    ) -> Input<U> {
        let refusal = match input {
            Input::Missing => return Input::Missing,
            Input::Null => return Input::Null,
            Input::Wrong(got) => ("wrong_type", format!("{field} must be {kind}, got {got}")),
            Input::Given(value) => match parse(value) {
                Ok(value) => return Input::Given(value),
                Err(refusal) => refusal,
            },
        };
        self.refuse(field, refusal);
        Input::Null
    }

    fn refuse(&mut self, field: &'static str, (reason, message): Refusal) {
        self.0.push(FieldError { field, reason, message });
    }
}
