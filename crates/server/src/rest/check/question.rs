//! The request of a check, and its validation.

use axum::http::HeaderMap;
use headgate::{Cost, Key};
use headgate_ratelimit::{
    Attributes, InvalidWindow, Scope, UnknownScope, Window,
    usecase::{AnyQuestion, AttributesQuestion, Question, check::RuleSelection},
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::attributes::WireAttributes;
use crate::rest::{
    error::{ApiError, Detail},
    field::Field,
    idempotency,
    json_body::WireObject,
};

/// A check of one subject, by `scope` and `identifier`, or by `attributes`, or by both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Check)]
pub(in crate::rest) struct WireQuestion<'a> {
    /// Kind of subject. Required without `attributes`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<super::super::schemas::Scope>)]
    scope: Field<'a>,
    /// Identifier: 1 to 512 bytes without control characters and braces.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", example = "user-001")]
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
    /// Facts about the request, for rules over attributes: at most 32 strings, numbers and lists of
    /// strings by name. `service`, `user` and `endpoint` are also subjects of the other rules.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>, example = json!({"tenant": "acme", "path": "/v1/exports/7"}))]
    attributes: WireAttributes<'a>,
    /// Adds every rule that applied to the response.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    limits: Field<'a>,
    /// Idempotency key, by which the units can be refunded. Choose it yourself: two checks must not have the same.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$", example = "req_abc123def456")]
    request_id: Field<'a>,
}

/// Maximum length of an idempotency key, in bytes.
const MAX_REQUEST_ID: usize = 128;

impl<'a> WireObject<'a> for WireQuestion<'a> {
    fn problems(self) -> Vec<Detail> {
        let wrong =
            if self.has_attributes() { self.read_attributes().err() } else { self.read().err() };
        let named = self.request_id(&HeaderMap::new()).err();
        wrong.into_iter().flatten().chain(self.limits().err()).chain(named).collect()
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

    /// Returns `true` if the response has more than usual.
    pub(super) const fn is_detailed(&self) -> bool {
        self.has_attributes()
            || !matches!((&self.limits, &self.request_id), (Field::Missing, Field::Missing))
    }

    /// Returns the check and the dry-run flag, or all that is invalid.
    pub(in crate::rest) fn any(&self) -> Result<(AnyQuestion<'_>, bool), Vec<Detail>> {
        if self.has_attributes() {
            let (question, dry_run) = self.read_attributes()?;
            return Ok((question.into(), dry_run));
        }
        let (question, dry_run) = self.read()?;
        Ok((question.into(), dry_run))
    }

    /// Returns the idempotency key: that of the body, or of the headers.
    pub(in crate::rest) fn request_id<'s>(
        &'s self,
        headers: &'s HeaderMap,
    ) -> Result<Option<&'s str>, Detail> {
        request_id(&self.request_id, headers)
    }

    /// The error of an idempotency key in a batch, whose checks cannot be refunded one by one.
    pub(super) fn request_id_in_batch(&self) -> Option<Detail> {
        let message = "request_id is for single checks: remove it";
        let is_set = !matches!(self.request_id, Field::Missing | Field::Null);
        is_set.then(|| Detail::new("request_id", "invalid", message.to_owned()))
    }

    /// The options that are set, each as an error where only the check itself is expected.
    pub(in crate::rest) fn options(&self) -> Vec<Detail> {
        let options = [
            ("dry_run", &self.dry_run),
            ("limits", &self.limits),
            ("request_id", &self.request_id),
        ];
        let set = |field: &Field<'_>| !matches!(field, Field::Missing | Field::Null);
        let set = options.into_iter().filter(|(_, field)| set(field));
        set.map(|(name, _)| {
            let message = format!("{name} is not for the checks of a reservation");
            Detail::new(name, "invalid", message)
        })
        .collect()
    }

    pub(super) const fn has_attributes(&self) -> bool {
        self.attributes.is_given()
    }

    /// Returns `true` if the response lists the limits that applied.
    pub(super) fn limits(&self) -> Result<bool, Detail> {
        let limits = self.limits.flag("limits");
        limits.map_err(|message| Detail::new("limits", "wrong_type", message))
    }

    /// Returns the check with attributes and the dry-run flag, or all that is invalid.
    pub(super) fn read_attributes(&self) -> Result<(AttributesQuestion<'_>, bool), Vec<Detail>> {
        let mut wrong = Vec::new();
        let mut attributes = self.attributes.read().unwrap_or_else(|mut details| {
            wrong.append(&mut details);
            Attributes::default()
        });
        let defaulted = self.add_subject(&mut attributes).unwrap_or_else(|mut details| {
            wrong.append(&mut details);
            None
        });
        if !matches!(self.window, Field::Missing | Field::Null) {
            let message = "window and attributes exclude each other".to_owned();
            wrong.push(Detail::new("window", "invalid", message));
        }
        let cost = self.cost().unwrap_or_else(|message| {
            wrong.push(Detail::new("cost", "invalid", message));
            Cost::ONE
        });
        let dry_run = self.dry_run.flag("dry_run").unwrap_or_else(|message| {
            wrong.push(Detail::new("dry_run", "wrong_type", message));
            false
        });
        let question = AttributesQuestion { attributes, defaulted, cost };
        if wrong.is_empty() { Ok((question, dry_run)) } else { Err(wrong) }
    }

    /// Adds the subject to the attributes, if one was sent.
    fn add_subject<'s>(
        &'s self,
        attributes: &mut Attributes<'s>,
    ) -> Result<Option<Scope>, Vec<Detail>> {
        let unset = |field: &Field<'_>| matches!(field, Field::Missing | Field::Null);
        if unset(&self.scope) && unset(&self.identifier) {
            return Ok(None);
        }
        let scope = text("scope", &self.scope).and_then(scope);
        let subject = text("identifier", &self.identifier).and_then(subject);
        match (scope, subject) {
            (Ok(scope), Ok(subject)) => {
                let value = attributes.get(scope.name()).and_then(|value| value.text());
                if value != Some(subject.subject()) {
                    attributes.insert(scope.name(), subject.subject()).map_err(|error| {
                        let message = format!("identifier contradicts the attributes: {error}");
                        vec![Detail::new("identifier", "invalid", message)]
                    })?;
                }
                Ok(Some(scope))
            }
            (scope, subject) => Err([scope.err(), subject.err()].into_iter().flatten().collect()),
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

/// The idempotency key: the body's, else the header's.
pub(in crate::rest) fn request_id<'a>(
    field: &'a Field<'_>,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, Detail> {
    let (name, named) = match text("request_id", field)? {
        Some(named) => ("request_id", Some(named)),
        None => ("Idempotency-Key", idempotency::key(headers)?),
    };
    let Some(named) = named else { return Ok(None) };
    if (1..=MAX_REQUEST_ID).contains(&named.len()) && !named.contains(char::is_control) {
        return Ok(Some(named));
    }
    let message = format!("{name} must have 1 to {MAX_REQUEST_ID} bytes and no control characters");
    Err(Detail::new(name, "invalid", message))
}

/// The text in a field.
pub(in crate::rest) fn text<'a>(
    name: &'static str,
    field: &'a Field<'_>,
) -> Result<Option<&'a str>, Detail> {
    field.text(name).map_err(|message| Detail::new(name, "wrong_type", message))
}
