use headgate::LimitError;
use headgate_ratelimit::AttributeError;
use headgate_rules_file::FileError;
use thiserror::Error;

/// A request has no peer address, by which it would have to be limited.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the request has no peer address")]
pub struct UnknownPeer;

/// An error of rules that cannot be in force.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file is unreadable or invalid.
    #[error(transparent)]
    File(#[from] FileError),
    /// A limit is invalid.
    #[error("invalid limit: {0}")]
    Limit(#[from] LimitError),
    /// There are more rules or overrides than this.
    #[error("there may be at most {1} {0}")]
    TooMany(&'static str, u64),
    /// An extractor cannot be added.
    #[error("invalid extractor: {0}")]
    Extractor(#[from] AttributeError),
    /// The server did not answer, or not with rules.
    #[error("cannot fetch rules: {0}")]
    Server(String),
}
