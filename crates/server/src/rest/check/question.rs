//! From what a caller sent to a question that makes sense.

use std::borrow::Cow;

use headgate::Key;
use serde::Deserialize;

use super::field::Field;
use crate::{
    rest::{
        error::{ApiError, Detail},
        window::{self, NotAWindow},
    },
    rule::{DefaultRule, Scope},
};

/// The body as it was sent.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a JSON object")]
pub(super) struct WireQuestion<'a> {
    #[serde(borrow, default)]
    scope: Field<'a>,
    #[serde(borrow, default)]
    identifier: Field<'a>,
    #[serde(borrow, default)]
    window: Field<'a>,
}

/// A subject that may or may not go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'a> {
    pub(super) scope: Scope,
    pub(super) subject: Key<'a>,
}

impl WireQuestion<'_> {
    /// The question, or everything that is wrong with it.
    pub(super) fn validate(&self, rule: &DefaultRule) -> Result<Question<'_>, ApiError> {
        let scope = self.scope().map_err(|message| Detail { field: "scope", message });
        let subject = self.subject().map_err(|message| Detail { field: "identifier", message });
        let window = self.window(rule).map_err(|message| Detail { field: "window", message });
        match (scope, subject, window) {
            (Ok(scope), Ok(subject), Ok(())) => Ok(Question { scope, subject }),
            (scope, subject, window) => {
                let wrong = [scope.err(), subject.err(), window.err()];
                Err(ApiError::Invalid(wrong.into_iter().flatten().collect()))
            }
        }
    }

    fn scope(&self) -> Result<Scope, String> {
        let name = required("scope", &self.scope)?;
        name.parse().map_err(|error: crate::rule::UnknownScope| error.to_string())
    }

    fn subject(&self) -> Result<Key<'_>, String> {
        Key::new(required("identifier", &self.identifier)?).map_err(|error| {
            let error = error.to_string();
            // The engine speaks of keys; callers know this one as the identifier.
            format!("identifier{}", error.strip_prefix("key").unwrap_or(&error))
        })
    }

    /// A window chooses among the rules; it never opens a bucket of its own.
    fn window(&self, rule: &DefaultRule) -> Result<(), String> {
        let seconds = match &self.window {
            Field::Missing => return Ok(()),
            Field::Text(text) => window::seconds(text).map_err(|error| error.to_string())?,
            Field::Number(seconds) => *seconds,
            Field::Other(_) => return Err(NotAWindow.to_string()),
        };
        let known = rule.window_seconds();
        if seconds == known {
            return Ok(());
        }
        Err(format!("no rule has a window of {seconds}s; windows here: {known}s"))
    }
}

fn required<'a>(name: &str, field: &'a Field<'_>) -> Result<&'a str, String> {
    let kind = match field {
        Field::Text(Cow::Borrowed(text)) => return Ok(text),
        Field::Text(Cow::Owned(text)) => return Ok(text),
        Field::Missing => return Err(format!("{name} is required")),
        Field::Number(_) => "a number",
        Field::Other(kind) => kind,
    };
    Err(format!("{name} must be a string, got {kind}"))
}
