//! The request of a check, and its validation.

use headgate::{Cost, Key};
use headgate_ratelimit::{
    InvalidWindow, Scope, UnknownScope, Window,
    usecase::{Question, check::RuleSelection},
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::rest::{
    error::{ApiError, Detail},
    field::Field,
    json_body::WireObject,
};

/// A check of one subject.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Check)]
pub(in crate::rest) struct WireQuestion<'a> {
    /// Kind of subject.
    #[serde(borrow, default)]
    #[schema(value_type = super::super::schemas::Scope, required = true)]
    scope: Field<'a>,
    /// Identifier: 1 to 512 bytes without control characters and braces.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", example = "user-001")]
    identifier: Field<'a>,
    /// Asks only the rule with this window.
    #[serde(borrow, default)]
    #[schema(value_type = Option<crate::rest::schemas::Window>, example = "60s")]
    window: Field<'a>,
    /// Units to take; default 1.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 1)]
    cost: Field<'a>,
    /// Dry run: decides without taking anything.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    dry_run: Field<'a>,
}

impl<'a> WireObject<'a> for WireQuestion<'a> {
    fn problems(self) -> Vec<Detail> {
        self.read().err().unwrap_or_default()
    }
}

impl WireQuestion<'_> {
    /// Returns the question and the dry-run flag, or all that is invalid.
    pub(super) fn validate(&self) -> Result<(Question<'_>, bool), ApiError> {
        self.read().map_err(ApiError::Invalid)
    }

    /// The same, for one of many.
    pub(super) fn read(&self) -> Result<(Question<'_>, bool), Vec<Detail>> {
        let scope = text("scope", &self.scope).and_then(scope);
        let subject = text("identifier", &self.identifier).and_then(subject);
        let selection =
            self.selection().map_err(|message| Detail::new("window", "invalid", message));
        let cost = self.cost().map_err(|message| Detail::new("cost", "invalid", message));
        let dry_run = self.dry_run.flag("dry_run");
        let dry_run = dry_run.map_err(|message| Detail::new("dry_run", "wrong_type", message));
        match (scope, subject, selection, cost, dry_run) {
            (Ok(scope), Ok(subject), Ok(selection), Ok(cost), Ok(dry_run)) => {
                Ok((Question { scope, subject, selection, cost }, dry_run))
            }
            (scope, subject, selection, cost, dry_run) => {
                let wrong =
                    [scope.err(), subject.err(), selection.err(), cost.err(), dry_run.err()];
                Err(wrong.into_iter().flatten().collect())
            }
        }
    }

    /// A window chooses among the rules; it never opens a bucket of its own.
    fn selection(&self) -> Result<RuleSelection, String> {
        match &self.window {
            Field::Missing | Field::Null => Ok(RuleSelection::Matching),
            Field::Text(text) => match text.parse::<Window>() {
                Ok(window) => Ok(RuleSelection::Window(window.seconds())),
                Err(error) => Err(error.to_string()),
            },
            Field::Number(seconds) if *seconds > 0 => {
                Ok(RuleSelection::Window(seconds.unsigned_abs()))
            }
            _ => Err(InvalidWindow.to_string()),
        }
    }

    fn cost(&self) -> Result<Cost, String> {
        match &self.cost {
            Field::Missing | Field::Null => Ok(Cost::ONE),
            Field::Number(units) if *units >= 0 => {
                Cost::new(units.unsigned_abs()).map_err(|error| error.to_string())
            }
            _ => Err("cost must be a whole number of at least 1".to_owned()),
        }
    }
}

/// The scope that was sent, if one was.
pub(in crate::rest) fn scope(name: Option<&str>) -> Result<Scope, Detail> {
    let required = || Detail::new("scope", "required", "scope is required".to_owned());
    let name = name.ok_or_else(required)?;
    name.parse().map_err(|error: UnknownScope| Detail::new("scope", "unknown", error.to_string()))
}

/// The subject whose identifier was sent, if one was.
pub(in crate::rest) fn subject(identifier: Option<&str>) -> Result<Key<'_>, Detail> {
    let required = || Detail::new("identifier", "required", "identifier is required".to_owned());
    Key::new(identifier.ok_or_else(required)?).map_err(|error| {
        let error = error.to_string();
        // The engine speaks of keys; callers know this one as the identifier.
        let message = format!("identifier{}", error.strip_prefix("key").unwrap_or(&error));
        Detail::new("identifier", "invalid", message)
    })
}

/// The text in a field.
pub(in crate::rest) fn text<'a>(
    name: &'static str,
    field: &'a Field<'_>,
) -> Result<Option<&'a str>, Detail> {
    field.text(name).map_err(|message| Detail::new(name, "wrong_type", message))
}
