//! What a service reads from JSON.

use std::fmt::Debug;

use serde_json::Value;
use thiserror::Error;

use crate::{
    BootstrapDocument, Doubt, RelayDocument, UserApiDocument,
    problem::{Problem, summary},
    reader::Reader,
    secrets,
};

/// A service's document, with a value for every setting.
pub trait Document: Clone + Debug + Send + Sync + 'static {
    /// The service that it is for.
    const SERVICE: &'static str;

    /// Reads it; what is missing is the default.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// What to run on without a document: stricter than the defaults.
    fn safe(doubt: &Doubt) -> Self;
}

/// Why a document is not kept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Invalid {
    /// There is no such service.
    #[error("there is no service of this name; there are: {}", SERVICES.join(", "))]
    Service,
    /// It is too large.
    #[error("the document has {0} bytes; at most {MAX_BYTES} are kept")]
    TooLarge(usize),
    /// It has fields that are named as secrets are, at these JSON pointers.
    #[error("documents hold no secrets; rename or remove: {}", .0.join(", "))]
    Secrets(Vec<String>),
    /// Fields are wrong.
    #[error("{}", summary(.0))]
    Fields(Vec<Problem>),
}

/// The services that have documents.
pub const SERVICES: [&str; 3] =
    [RelayDocument::SERVICE, UserApiDocument::SERVICE, BootstrapDocument::SERVICE];

/// The most bytes of a document, as JSON without blanks.
pub const MAX_BYTES: usize = 64 * 1024;

/// The document in `config`. Fields that are not known are passed over: while services are replaced
/// by newer ones, an older one may find them.
pub fn read<D: Document>(config: &Value) -> Result<D, Vec<Problem>> {
    let (document, mut problems) = read_all::<D>(config);
    problems.retain(|problem| !problem.unknown);
    if problems.is_empty() { Ok(document) } else { Err(problems) }
}

/// Whether `config` can be the document of `service`: everything that is wrong, fields that are not
/// known included, since a misspelt limit limits nothing.
pub fn validate(service: &str, config: &Value) -> Result<(), Invalid> {
    let problems = match service {
        RelayDocument::SERVICE => problems_of::<RelayDocument>,
        UserApiDocument::SERVICE => problems_of::<UserApiDocument>,
        BootstrapDocument::SERVICE => problems_of::<BootstrapDocument>,
        _ => return Err(Invalid::Service),
    };
    let size = config.to_string().len();
    if size > MAX_BYTES {
        return Err(Invalid::TooLarge(size));
    }
    let secrets = secrets::find(config);
    if !secrets.is_empty() {
        return Err(Invalid::Secrets(secrets));
    }
    let problems = problems(config);
    if problems.is_empty() { Ok(()) } else { Err(Invalid::Fields(problems)) }
}

fn problems_of<D: Document>(config: &Value) -> Vec<Problem> {
    read_all::<D>(config).1
}

fn read_all<D: Document>(config: &Value) -> (D, Vec<Problem>) {
    let mut reader = Reader::new(Some(config), String::new());
    let document = D::read(&mut reader);
    (document, reader.finish())
}

#[cfg(test)]
mod tests;
