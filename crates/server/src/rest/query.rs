//! Query parameters; all invalid ones are reported at once.

use std::{borrow::Cow, convert::Infallible, str::FromStr};

use axum::{
    extract::FromRequestParts,
    http::{Method, request::Parts},
};
use headgate_ratelimit::{Page, PageError};

use super::error::{ApiError, Detail};

/// The parameters of a request.
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

/// Refuses the parameters of a request that has none.
#[cold]
pub(super) fn refuse(method: &Method, query: &str) -> Result<(), ApiError> {
    let hint = match *method {
        Method::POST | Method::PUT => "it belongs in the JSON body",
        _ => "this request has none",
    };
    let unexpected = |(name, _): (Cow<'_, str>, _)| {
        let shown = shown(&name);
        let message = format!("unknown query parameter {shown:?}; {hint}");
        Detail::at(shown, "unknown", message)
    };
    let names = form_urlencoded::parse(query.as_bytes()).take(MAX_LISTED);
    let unexpected: Vec<Detail> = names.map(unexpected).collect();
    if unexpected.is_empty() { Ok(()) } else { Err(ApiError::Invalid(unexpected)) }
}

/// The start of a name.
fn shown(name: &str) -> String {
    name.chars().take(MAX_NAME_CHARS).collect()
}

impl Query {
    /// Reads the `known` parameters, and rejects all others, since misspelt ones would be silently
    /// ignored, and duplicates, which are ambiguous.
    pub(super) fn reader(&self, known: &[&[&str]]) -> Reader<'_> {
        let mut reader = self.lenient_reader();
        let known = || known.iter().copied().flatten().copied();
        let names = reader.parameters.iter().map(|(name, _)| &**name);
        let unknown = names.filter(|name| !known().any(|it| it == *name)).take(MAX_LISTED);
        let unknown_parameter = |name: &str| {
            let shown = shown(name);
            let known = known().collect::<Vec<_>>().join(", ");
            let message = format!("unknown parameter {shown:?}; known here: {known}");
            Detail::at(shown, "unknown", message)
        };
        let duplicates = known().filter(|known| {
            reader.parameters.iter().filter(|(name, _)| name == known).nth(1).is_some()
        });
        let duplicate =
            |name: &str| Detail::at(name.to_owned(), "duplicate", format!("{name} is given twice"));
        reader.wrong = unknown.map(unknown_parameter).chain(duplicates.map(duplicate)).collect();
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
    /// Returns the text of a parameter. An empty one counts as missing: a filter by no text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.parameters.iter().find(|(key, _)| key == name)?;
        Some(&**value).filter(|value| !value.is_empty())
    }

    /// Parses a parameter as `T`. An empty one is invalid: `?dry_run` does not mean false.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        name: &'static str,
        wrong: impl FnOnce() -> String,
    ) -> Option<T> {
        let (_, value) = self.parameters.iter().find(|(key, _)| key == name)?;
        let parsed = value.parse().ok();
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
