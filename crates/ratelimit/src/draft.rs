//! A rule before anybody knows whether it is one.

use headgate::{Algorithm, FailMode, LimitError};

use crate::{Pattern, RuleSpec, Scope, UnknownScope};

/// What somebody wants a rule to say.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// See [`RuleSpec::name`].
    pub name: Input<String>,
    /// See [`RuleSpec::scope`].
    pub scope: Input<String>,
    /// See [`RuleSpec::identifier_pattern`].
    pub identifier_pattern: Input<String>,
    /// See [`RuleSpec::limit`].
    pub limit: Input<i64>,
    /// See [`RuleSpec::window_seconds`].
    pub window_seconds: Input<i64>,
    /// See [`RuleSpec::algorithm`].
    pub algorithm: Input<String>,
    /// See [`RuleSpec::burst`].
    pub burst: Input<i64>,
    /// See [`RuleSpec::fail_mode`].
    pub fail_mode: Input<String>,
    /// See [`RuleSpec::enabled`].
    pub enabled: Input<bool>,
}

/// What was sent for one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input<T> {
    /// Nothing: where there is a rule already, what it says stays.
    #[default]
    Missing,
    /// Expressly nothing: what the rule says is taken back.
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
#[derive(Default)]
struct Reader(Vec<FieldError>);

// === impl Draft ===

impl Draft {
    /// The longest name.
    pub const MAX_NAME_CHARS: usize = 255;

    /// What a new rule says, or everything that is wrong with it. With a `present` rule, optional
    /// fields that were left out stay as they are there.
    pub fn validate(self, present: Option<&RuleSpec>) -> Result<RuleSpec, Vec<FieldError>> {
        let mut reader = Reader::default();
        let scope = reader.required("scope", self.scope, "a string", |name| parse_scope(&name));
        let pattern =
            reader.required("identifier_pattern", self.identifier_pattern, "a string", |text| {
                text.parse::<Pattern>().map_err(|error| ("invalid", error.to_string()))
            });
        let limit = reader.required("limit", self.limit, "a whole number", positive("limit"));
        let window_seconds = reader.required(
            "window_seconds",
            self.window_seconds,
            "a whole number",
            positive("window_seconds"),
        );
        let name = reader
            .read("name", self.name, "a string", parse_name)
            .or(present.and_then(|rule| rule.name.clone()));
        let algorithm = reader
            .read("algorithm", self.algorithm, "a string", |name| parse_algorithm(&name))
            .or(present.map(|rule| rule.algorithm))
            .unwrap_or(Algorithm::TokenBucket);
        let burst = reader
            .read("burst", self.burst, "a whole number", positive("burst"))
            .or(present.and_then(|rule| rule.burst));
        let fail_mode = reader
            .read("fail_mode", self.fail_mode, "a string", |name| parse_fail_mode(&name))
            .or(present.and_then(|rule| rule.fail_mode));
        let enabled = reader
            .read("enabled", self.enabled, "a boolean", Ok)
            .or(present.map(|rule| rule.enabled))
            .unwrap_or(true);

        let (Some(scope), Some(identifier_pattern), Some(limit), Some(window_seconds)) =
            (scope, pattern, limit, window_seconds)
        else {
            return Err(reader.0);
        };
        let spec = RuleSpec {
            name,
            scope,
            identifier_pattern,
            limit,
            window_seconds,
            algorithm,
            burst,
            fail_mode,
            enabled,
        };
        if let Err(error) = spec.engine_limit() {
            reader.0.push(FieldError::of_limit(&error));
        }
        if reader.0.is_empty() { Ok(spec) } else { Err(reader.0) }
    }
}

impl From<&RuleSpec> for Draft {
    fn from(spec: &RuleSpec) -> Self {
        let or_null = |text: Option<String>| text.map_or(Input::Null, Input::Given);
        Self {
            name: or_null(spec.name.clone()),
            scope: Input::Given(spec.scope.name().to_owned()),
            identifier_pattern: Input::Given(spec.identifier_pattern.to_string()),
            limit: Input::Given(spec.limit.into()),
            window_seconds: Input::Given(spec.window_seconds.into()),
            algorithm: Input::Given(spec.algorithm.name().to_owned()),
            burst: spec.burst.map_or(Input::Null, |burst| Input::Given(burst.into())),
            fail_mode: or_null(spec.fail_mode.map(|mode| mode.name().to_owned())),
            enabled: Input::Given(spec.enabled),
        }
    }
}

// === impl Input ===

impl<T> Input<T> {
    /// The value, or what is `kept` where nothing was sent.
    fn or(self, kept: Option<T>) -> Option<T> {
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

type Refusal = (&'static str, String);

fn parse_scope(name: &str) -> Result<Scope, Refusal> {
    name.parse().map_err(|error: UnknownScope| ("unknown", error.to_string()))
}

fn parse_name(name: String) -> Result<String, Refusal> {
    let chars = name.chars().count();
    if name.chars().any(char::is_control) {
        return Err(("invalid", "name must not contain control characters".to_owned()));
    }
    if (1..=Draft::MAX_NAME_CHARS).contains(&chars) {
        return Ok(name);
    }
    Err(("length", format!("name must have 1 to {} characters", Draft::MAX_NAME_CHARS)))
}

fn parse_algorithm(name: &str) -> Result<Algorithm, Refusal> {
    let known = || Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar);
    known().find(|algorithm| algorithm.name() == name).ok_or_else(|| {
        let names: Vec<&str> = known().map(Algorithm::name).collect();
        ("unknown", format!("algorithm must be one of: {}", names.join(", ")))
    })
}

fn parse_fail_mode(name: &str) -> Result<FailMode, Refusal> {
    let unknown = |_| ("unknown", "fail_mode must be one of: open, closed, local".to_owned());
    name.parse().map_err(unknown)
}

fn positive(field: &'static str) -> impl Fn(i64) -> Result<u32, Refusal> {
    move |number| match u32::try_from(number) {
        Ok(0) | Err(_) if number <= 0 => {
            Err(("must_be_positive", format!("{field} must be greater than 0")))
        }
        Ok(number) => Ok(number),
        Err(_) => Err(("too_large", format!("{field} must be at most {}", u32::MAX))),
    }
}

// === impl Reader ===

impl Reader {
    /// The value of a field that must be there.
    fn required<T, U>(
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
    fn read<T, U>(
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

// === impl FieldError ===

impl FieldError {
    /// What the engine says about numbers that are each possible but make no limit together.
    fn of_limit(error: &LimitError) -> Self {
        let (field, reason) = match error {
            LimitError::Zero | LimitError::TooLarge { .. } => ("limit", "too_large"),
            LimitError::Window(_) => ("window_seconds", "too_large"),
            LimitError::ZeroBurst | LimitError::BurstTooLarge | LimitError::NoBurst(_) => {
                ("burst", "invalid")
            }
            LimitError::NeedsPeriod | LimitError::UnknownZone(_) => ("algorithm", "invalid"),
        };
        let message = match error {
            LimitError::Window(_) => {
                let max = headgate::Limit::MAX_WINDOW.as_secs();
                format!("window_seconds must be at most {max}")
            }
            other => other.to_string(),
        };
        Self { field, reason, message }
    }
}

#[cfg(test)]
mod tests;
