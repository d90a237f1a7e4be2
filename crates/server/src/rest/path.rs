use std::convert::Infallible;

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};

/// The parameter in a path, such as a rule's id. It never fails: what is not UTF-8 is no known id
/// either, and answered as such.
pub(super) struct PathParam(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathParam {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(text.map_or_else(|_| parts.uri.path().to_owned(), |Path(text)| text)))
    }
}

/// Two parameters in a path, such as the ids of a quota and of its reservation. It never fails,
/// either.
pub(super) struct PathPair(pub(super) String, pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathPair {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let pair = Path::<(String, String)>::from_request_parts(parts, state).await;
        let unknown = || (parts.uri.path().to_owned(), String::new());
        let (first, second) = pair.map_or_else(|_| unknown(), |Path(pair)| pair);
        Ok(Self(first, second))
    }
}
