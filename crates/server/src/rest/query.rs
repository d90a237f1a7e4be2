//! Query parameters; all invalid ones are reported at once.

use std::{borrow::Cow, convert::Infallible, str::FromStr};

use axum::{extract::FromRequestParts, http::request::Parts};
use headgate_ratelimit::{Page, PageError};

use super::error::{ApiError, Detail};

/// The parameters of a request. Of duplicates, the first one counts.
pub(super) struct Query(String);

/// Reads parameters and collects the invalid ones.
pub(super) struct Reader<'q> {
    parameters: Vec<(Cow<'q, str>, Cow<'q, str>)>,
    wrong: Vec<Detail>,
}

/// The parameters that choose a page.
pub(super) const PAGE: [&str; 2] = ["page", "page_size"];

/// Maximum number of unknown parameters that are listed, and of characters of each name.
const MAX_LISTED: usize = 20;
const MAX_NAME_CHARS: usize = 64;

impl Query {
    /// Reads the `known` parameters, and rejects all others: misspelt ones would be silently
    /// ignored.
    pub(super) fn reader(&self, known: &[&[&str]]) -> Reader<'_> {
        let mut reader = self.lenient_reader();
        let known = || known.iter().copied().flatten().copied();
        let names = reader.parameters.iter().map(|(name, _)| &**name);
        let unknown = names.filter(|name| !known().any(|it| it == *name)).take(MAX_LISTED);
        let unknown_parameter = |name: &str| {
            let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
            let known = known().collect::<Vec<_>>().join(", ");
            let message = format!("unknown parameter {shown:?}; known here: {known}");
            Detail::at(shown, "unknown", message)
        };
        reader.wrong = unknown.map(unknown_parameter).collect();
        reader
    }

    /// Reads parameters of another program; unknown ones are ignored.
    pub(super) fn lenient_reader(&self) -> Reader<'_> {
        let parameters = form_urlencoded::parse(self.0.as_bytes()).collect();
        Reader { parameters, wrong: Vec::new() }
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.uri.query().unwrap_or_default().to_owned()))
    }
}

// === impl Reader ===

impl Reader<'_> {
    /// Returns the text of a parameter; an empty one counts as missing.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.parameters.iter().find(|(key, _)| key == name)?;
        Some(&**value).filter(|value| !value.is_empty())
    }

    /// Parses a parameter as `T`.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        name: &'static str,
        wrong: impl FnOnce() -> String,
    ) -> Option<T> {
        let parsed = self.text(name)?.parse().ok();
        if parsed.is_none() {
            self.refuse(name, wrong());
        }
        parsed
    }

    /// The requested page.
    pub(super) fn page(&mut self) -> Page {
        let number = self.parsed("page", || PageError::Number.to_string());
        let size = self.parsed("page_size", || PageError::Size.to_string());
        let number = number.unwrap_or(Page::DEFAULT.number());
        let size = size.unwrap_or(Page::DEFAULT.size());
        Page::new(number, size).unwrap_or_else(|error| {
            let name = match error {
                PageError::Number => "page",
                PageError::Size => "page_size",
            };
            self.refuse(name, error.to_string());
            Page::DEFAULT
        })
    }

    pub(super) fn refuse(&mut self, name: &'static str, message: String) {
        self.add(Detail::new(name, "invalid", message));
    }

    pub(super) fn add(&mut self, detail: Detail) {
        self.wrong.push(detail);
    }

    /// Returns an error if any parameter is invalid.
    pub(super) fn finish(&self) -> Result<(), ApiError> {
        if self.wrong.is_empty() { Ok(()) } else { Err(ApiError::Invalid(self.wrong.clone())) }
    }
}
