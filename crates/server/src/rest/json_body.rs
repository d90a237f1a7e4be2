//! JSON bodies of requests.

mod unknown;

use std::pin::pin;

use axum::{
    BoxError,
    body::{Bytes, HttpBody},
    extract::{FromRequest, OptionalFromRequest, Request},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;

use super::{
    error::{ApiError, Detail},
    json,
};

/// Maximum size of a request body.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

/// Maximum size of a list of rules: 640 bytes each for 100,000 of them.
pub(super) const MAX_LIST_BYTES: usize = 64 * 1024 * 1024;

/// Characters of the start and of the end of a parser's message that are shown.
const MAX_MESSAGE_PART: usize = 100;

/// An object that a body can hold. It refuses unknown fields: one that is misspelt would otherwise
/// be answered as if it had been left out.
pub(super) trait WireObject<'a>: Deserialize<'a> {
    /// Returns the other problems of an object that had unknown fields.
    fn problems(self) -> Vec<Detail>;
}

/// A body that was sent as JSON, not yet parsed.
pub(super) struct JsonBody<const MAX_BYTES: usize = MAX_BODY_BYTES>(Bytes);

/// The body of a request without fields, not yet parsed: nothing, or an empty object. What else is
/// sent would be silently ignored.
pub(super) struct EmptyBody(Option<JsonBody>);

/// An object without fields.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
struct NoFields {}

impl<const MAX_BYTES: usize> JsonBody<MAX_BYTES> {
    /// Parses the object, which may borrow from the body.
    pub(super) fn parse<'a, T: WireObject<'a>>(&'a self) -> Result<T, ApiError> {
        let wrong = |message: String| Err(ApiError::BadBody(message));
        match self.0.trim_ascii_start().first() {
            None => return wrong("the body is empty; expected a JSON object".to_owned()),
            // The first byte of gzip.
            Some(0x1f) => {
                return wrong("the body is compressed; send it without a content-encoding".into());
            }
            // Serde would accept a list as an object without keys.
            Some(byte) if *byte != b'{' => {
                return wrong("the body must be a JSON object".to_owned());
            }
            Some(_) => {}
        }
        // Validate UTF-8 once: otherwise serde checks each string.
        let Ok(text) = str::from_utf8(&self.0) else {
            return wrong("the body is not valid JSON: it is not UTF-8".to_owned());
        };
        match serde_json::from_str(text) {
            Ok(object) => Ok(object),
            Err(error) if error.is_data() => Err(unfit::<T>(text, &error)),
            Err(error) => wrong(format!("the body is not valid JSON: {error}")),
        }
    }
}

/// Returns the error of JSON that is not a `T`: all invalid fields, or the position of the parser.
#[cold]
fn unfit<'a, T: WireObject<'a>>(text: &'a str, error: &serde_json::Error) -> ApiError {
    let (object, mut wrong) = unknown::parse::<T>(String::new(), text);
    if wrong.is_empty() {
        return ApiError::BadBody(format!("the body does not fit: {}", excerpt(error)));
    }
    wrong.extend(object.map(T::problems).unwrap_or_default());
    ApiError::Invalid(wrong)
}

/// Parses a part of a body, at `path`. Returns all unknown fields of one that does not fit.
pub(super) fn parse_part<'a, T: Deserialize<'a>>(
    path: String,
    text: &'a str,
) -> Result<T, Vec<Detail>> {
    serde_json::from_str(text).map_err(|error| {
        let (_, unknown) = unknown::parse::<T>(path.clone(), text);
        if unknown.is_empty() {
            vec![Detail::at(path, "invalid", format!("does not fit: {}", excerpt(&error)))]
        } else {
            unknown
        }
    })
}

/// Returns the message without the middle of a long one, which repeats a value: the position is at
/// its end.
fn excerpt(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let total = message.chars().count();
    if total <= 2 * MAX_MESSAGE_PART {
        return message;
    }
    let start = message.chars().take(MAX_MESSAGE_PART);
    let end = message.chars().skip(total - MAX_MESSAGE_PART);
    start.chain(['…']).chain(end).collect()
}

impl<const MAX_BYTES: usize> JsonBody<MAX_BYTES> {
    /// Checks the content type and length in the head of `request`.
    pub(super) fn announced<B: HttpBody>(request: &Request<B>) -> Result<(), ApiError> {
        if !is_json(request.headers()) {
            return Err(ApiError::NotJson);
        }
        if request.body().size_hint().lower() > MAX_BYTES as u64 {
            return Err(ApiError::TooLarge(MAX_BYTES));
        }
        Ok(())
    }

    /// Reads a body.
    pub(super) async fn read<B>(body: B) -> Result<Self, ApiError>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        let mut body = pin!(Limited::new(body, MAX_BYTES));
        let first = Self::part(&mut body).await?.unwrap_or_default();
        if body.is_end_stream() {
            return Ok(Self(first));
        }
        let Some(second) = Self::part(&mut body).await? else {
            // Most bodies arrive in one part, which is not copied.
            return Ok(Self(first));
        };
        let mut whole = [first, second].concat();
        while let Some(part) = Self::part(&mut body).await? {
            whole.extend_from_slice(&part);
        }
        Ok(Self(whole.into()))
    }

    /// Reads the next part of a body, if there is one.
    async fn part<B>(body: &mut B) -> Result<Option<Bytes>, ApiError>
    where
        B: HttpBody<Data = Bytes, Error = BoxError> + Unpin,
    {
        while let Some(frame) = body.frame().await {
            // Trailers are ignored.
            if let Ok(part) = frame.map_err(|error| Self::broken(&error))?.into_data() {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    fn broken(error: &BoxError) -> ApiError {
        if error.is::<LengthLimitError>() {
            ApiError::TooLarge(MAX_BYTES)
        } else {
            ApiError::Interrupted
        }
    }
}

impl<S: Sync, const MAX_BYTES: usize> FromRequest<S> for JsonBody<MAX_BYTES> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        Self::announced(&request)?;
        Self::read(request.into_body()).await
    }
}

impl<S: Sync, const MAX_BYTES: usize> OptionalFromRequest<S> for JsonBody<MAX_BYTES> {
    type Rejection = ApiError;

    /// An empty body counts as missing, whatever its content type.
    async fn from_request(request: Request, _: &S) -> Result<Option<Self>, ApiError> {
        let unnamed = !request.headers().contains_key(header::CONTENT_TYPE);
        if !unnamed {
            Self::announced(&request)?;
        }
        let body = Self::read(request.into_body()).await?;
        match body.0.trim_ascii().is_empty() {
            true => Ok(None),
            false if unnamed => Err(ApiError::NotJson),
            false => Ok(Some(body)),
        }
    }
}

impl<S: Sync> FromRequest<S> for EmptyBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let body: JsonBody = JsonBody::read(request.into_body()).await?;
        match body.0.trim_ascii().is_empty() {
            true => Ok(Self(None)),
            false if is_json => Ok(Self(Some(body))),
            false => Err(ApiError::NotJson),
        }
    }
}

impl EmptyBody {
    /// Refuses a body with fields.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        self.0.as_ref().map_or(Ok(()), |body| body.parse::<NoFields>().map(drop))
    }
}

impl WireObject<'_> for NoFields {
    fn problems(self) -> Vec<Detail> {
        Vec::new()
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return false;
    };
    // Fast path: the usual spelling.
    if value == json::CONTENT_TYPE {
        return true;
    }
    let essence = value.to_str().ok().and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}
