//! Rules before validation.

mod concurrency;
mod lease;
mod selector;

use headgate::{Algorithm, FailMode, LimitError};
use headgate_admin::{FieldError, FieldReader, Input, InvalidValue};

pub use self::{lease::LeaseDraft, selector::SelectorDraft};
use crate::{Pattern, RuleSpec, Scope, UnknownScope};

/// The fields of a rule before validation.
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
    /// See [`RuleSpec::lease`].
    pub lease: Input<LeaseDraft>,
    /// See [`RuleSpec::enabled`].
    pub enabled: Input<bool>,
    /// See [`RuleSpec::selector`].
    pub selector: SelectorDraft,
}

// === impl Draft ===

impl Draft {
    /// Maximum length of a name in characters.
    pub const MAX_NAME_CHARS: usize = 255;

    /// Validates the fields and reports all errors at once. Optional fields that are missing keep
    /// their value in `current`, if given.
    pub fn validate(self, current: Option<&RuleSpec>) -> Result<RuleSpec, Vec<FieldError>> {
        let mut reader = FieldReader::default();
        let over_attributes = selector::is_over_attributes(&self, current);
        let subjects = (self.scope.clone(), self.identifier_pattern.clone());
        let (scope, mut pattern) = if over_attributes {
            (Some(Scope::Attributes), None)
        } else {
            read_subjects(&mut reader, self.scope, self.identifier_pattern)
        };
        let mut selector = self.selector;
        let limits = selector.read_limits(&mut reader);
        let limit = match &limits {
            Input::Given(limits) => Some(limits.fallback()),
            Input::Missing => {
                reader.required("limit", self.limit, "a whole number", positive("limit"))
            }
            // The errors are reported.
            Input::Null | Input::WrongType(_) => None,
        };
        let window_seconds = reader.required(
            "window_seconds",
            self.window_seconds,
            "a whole number",
            positive("window_seconds"),
        );
        let name = reader
            .read("name", self.name, "a string", parse_name)
            .or(current.and_then(|rule| rule.name.clone()));
        let algorithm = reader
            .read("algorithm", self.algorithm, "a string", |name| parse_algorithm(&name))
            .or(current.map(|rule| rule.algorithm))
            .unwrap_or(Algorithm::TokenBucket);
        let burst = reader
            .read("burst", self.burst, "a whole number", positive("burst"))
            .or(current.and_then(|rule| rule.burst));
        let fail_mode = reader
            .read("fail_mode", self.fail_mode, "a string", |name| parse_fail_mode(&name))
            .or(current.and_then(|rule| rule.fail_mode));
        let lease = lease::read(&mut reader, self.lease).or(current.and_then(|rule| rule.lease));
        let enabled = reader
            .read("enabled", self.enabled, "a boolean", Ok)
            .or(current.map(|rule| rule.enabled))
            .unwrap_or(true);

        if algorithm == Algorithm::Concurrency {
            concurrency::check(&mut reader, lease, window_seconds);
        } else if let (Some(lease), Some(seconds)) = (lease, window_seconds) {
            lease::check_window(&mut reader, lease, seconds);
        }
        let selector = over_attributes.then(|| {
            let kept = current.and_then(|current| current.selector.as_deref());
            selector.validate(&mut reader, limits.or(None), kept)
        });
        if over_attributes {
            pattern = selector::pattern_of(&mut reader, &subjects, name.as_deref());
        }

        let (Some(scope), Some(identifier_pattern), Some(limit), Some(window_seconds)) =
            (scope, pattern, limit, window_seconds)
        else {
            return Err(reader.errors());
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
            lease,
            enabled,
            selector,
        };
        if let Err(error) = spec.engine_limit() {
            reader.add(limit_error(&error));
        }
        for (value, units) in spec.plan_limits() {
            if let Err(error @ LimitError::TooLarge { .. }) = spec.engine_limit_of(units) {
                let message = format!("limit.{value}: {error}");
                reader.add(FieldError { field: "limit", reason: "too_large", message });
            }
        }
        reader.finish(spec)
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
            lease: spec.lease.map_or(Input::Null, |lease| Input::Given(lease.into())),
            enabled: Input::Given(spec.enabled),
            selector: spec.selector.as_deref().map(SelectorDraft::from).unwrap_or_default(),
        }
    }
}

/// Reads the subjects of a rule: scope and pattern.
fn read_subjects(
    reader: &mut FieldReader,
    scope: Input<String>,
    pattern: Input<String>,
) -> (Option<Scope>, Option<Pattern>) {
    let scope = reader.required("scope", scope, "a string", |name| parse_scope(&name));
    let pattern = reader.required("identifier_pattern", pattern, "a string", |text| {
        text.parse::<Pattern>().map_err(|error| ("invalid", error.to_string()))
    });
    (scope, pattern)
}

fn parse_scope(name: &str) -> Result<Scope, InvalidValue> {
    name.parse().map_err(|error: UnknownScope| ("unknown", error.to_string()))
}

fn parse_name(name: String) -> Result<String, InvalidValue> {
    let chars = name.chars().count();
    if name.chars().any(char::is_control) {
        return Err(("invalid", "name must not contain control characters".to_owned()));
    }
    if (1..=Draft::MAX_NAME_CHARS).contains(&chars) {
        return Ok(name);
    }
    Err(("length", format!("name must have 1 to {} characters", Draft::MAX_NAME_CHARS)))
}

fn parse_algorithm(name: &str) -> Result<Algorithm, InvalidValue> {
    let known = || Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar);
    known().find(|algorithm| algorithm.name() == name).ok_or_else(|| {
        let names: Vec<&str> = known().map(Algorithm::name).collect();
        ("unknown", format!("algorithm must be one of: {}", names.join(", ")))
    })
}

fn parse_fail_mode(name: &str) -> Result<FailMode, InvalidValue> {
    let unknown =
        |_| ("unknown", "fail_mode must be one of: capped, open, closed, local".to_owned());
    name.parse().map_err(unknown)
}

fn positive(field: &'static str) -> impl Fn(i64) -> Result<u32, InvalidValue> {
    move |number| match u32::try_from(number) {
        Ok(0) | Err(_) if number <= 0 => {
            Err(("must_be_positive", format!("{field} must be greater than 0")))
        }
        Ok(number) => Ok(number),
        Err(_) => Err(("too_large", format!("{field} must be at most {}", u32::MAX))),
    }
}

/// Names the field of an error that concerns several fields together.
fn limit_error(error: &LimitError) -> FieldError {
    let (field, reason) = match error {
        LimitError::Zero | LimitError::TooLarge { .. } => ("limit", "too_large"),
        LimitError::Window(_) => ("window_seconds", "too_large"),
        LimitError::ZeroBurst | LimitError::BurstTooLarge | LimitError::NoBurst(_) => {
            ("burst", "invalid")
        }
        _ => ("algorithm", "invalid"),
    };
    let message = match error {
        LimitError::Window(_) => {
            let max = headgate::Limit::MAX_WINDOW.as_secs();
            format!("window_seconds must be at most {max}")
        }
        other => other.to_string(),
    };
    FieldError { field, reason, message }
}

#[cfg(test)]
mod tests;
