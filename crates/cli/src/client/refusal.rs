//! An error as servers tell it, in words for people.

use std::fmt;

use reqwest::StatusCode;
use serde::Deserialize;
use thiserror::Error;

/// Why a server refused.
#[derive(Debug, Error)]
pub(crate) struct Refusal {
    status: StatusCode,
    told: Box<Told>,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct Envelope {
    error: Told,
}

#[derive(Debug, Deserialize)]
struct Told {
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
    /// Where the field was written, if that is known here.
    #[serde(skip)]
    place: Option<String>,
}

impl Refusal {
    /// The refusal in an answer's body.
    pub(super) fn read(status: StatusCode, body: Vec<u8>) -> Option<Self> {
        let Envelope { error } = serde_json::from_slice(&body).ok()?;
        Some(Self { status, told: Box::new(error), body })
    }

    /// Whether there is not so much left: an answer rather than a mistake.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
    }

    /// As the server sent it.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    /// What it says to people.
    pub(crate) fn message(&self) -> &str {
        &self.told.message
    }

    /// What it says of a field.
    pub(crate) fn detail(&self, field: &str) -> Option<&str> {
        let detail = self.told.details.iter().find(|detail| detail.field == field);
        detail.map(|detail| detail.message.as_str())
    }

    /// With the places where `find` knows fields to be written.
    pub(crate) fn located(mut self, find: impl Fn(&str) -> Option<String>) -> Self {
        for detail in &mut self.told.details {
            detail.place = find(&detail.field);
        }
        self
    }

    fn hint(&self) -> Option<&'static str> {
        match self.status {
            StatusCode::UNAUTHORIZED => Some(
                "Give a token with --token-file or HEADGATE_TOKEN_FILE, or --token or HEADGATE_TOKEN; \
                 a server that made its own keeps it in data/admin-token",
            ),
            StatusCode::FORBIDDEN => Some(
                "The token is known, but its roles do not allow this: give another with --token-file \
                 or HEADGATE_TOKEN_FILE, or --token or HEADGATE_TOKEN",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { code, message, request_id, details } = &*self.told;
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
            // Most messages begin with the field's name.
            None if message.starts_with(field.as_str()) => f.write_str(message),
            None => write!(f, "{field}: {message}"),
        }
    }
}
