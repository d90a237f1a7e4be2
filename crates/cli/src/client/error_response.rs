//! The error responses of the API.

use std::fmt;

use reqwest::StatusCode;
use serde::Deserialize;
use thiserror::Error;

/// An error that a server responded with.
#[derive(Debug, Error)]
pub(crate) struct ErrorResponse {
    status: StatusCode,
    error: Box<ErrorBody>,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct Envelope {
    error: ErrorBody,
}

#[derive(Debug, Deserialize)]
struct ErrorBody {
    code: String,
    message: String,
    request_id: String,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Debug, Deserialize)]
struct Detail {
    #[serde(default)]
    field: String,
    message: String,
    /// File and line of the field, if known.
    #[serde(skip)]
    place: Option<String>,
}

impl ErrorResponse {
    /// Parses the body of a response; `None` if it is no error of this API.
    pub(super) fn parse(status: StatusCode, body: Vec<u8>) -> Option<Self> {
        let Envelope { error } = serde_json::from_slice(&body).ok()?;
        Some(Self { status, error: Box::new(error), body })
    }

    /// Whether a limit or quota was exceeded.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// Whether the resource is in another state than the request needs.
    pub(crate) fn is_conflict(&self) -> bool {
        self.status == StatusCode::CONFLICT
    }

    /// The body as the server sent it.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// The message.
    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }

    /// The message about a field.
    pub(crate) fn detail(&self, field: &str) -> Option<&str> {
        let detail = self.error.details.iter().find(|detail| detail.field == field);
        detail.map(|detail| detail.message.as_str())
    }

    /// Adds the file and line that `find` returns for each field.
    pub(crate) fn located(mut self, find: impl Fn(&str) -> Option<String>) -> Self {
        for detail in &mut self.error.details {
            detail.place = find(&detail.field);
        }
        self
    }

    fn hint(&self) -> Option<&'static str> {
        match self.status {
            StatusCode::UNAUTHORIZED => Some(
                "Pass a token with --token-file or HEADGATE_TOKEN_FILE, or --token or HEADGATE_TOKEN; \
                 a token that the server generated is in its data/admin-token",
            ),
            StatusCode::FORBIDDEN => Some(
                "The token is valid, but its role does not allow this; pass another with --token-file \
                 or HEADGATE_TOKEN_FILE, or --token or HEADGATE_TOKEN",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorBody { code, message, request_id, details } = &*self.error;
        f.write_str(message)?;
        for detail in details {
            write!(f, "\n  {detail}")?;
        }
        write!(f, "\n({code}, request {request_id})")?;
        self.hint().map_or(Ok(()), |hint| write!(f, "\n{hint}"))
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, message, place } = self;
        match place {
            Some(place) => write!(f, "{field} ({place}): {message}"),
            // Most messages already begin with the field's name.
            None if message.starts_with(field.as_str()) => f.write_str(message),
            None => write!(f, "{field}: {message}"),
        }
    }
}
