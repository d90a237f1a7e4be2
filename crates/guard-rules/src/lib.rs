//! Rate limits of a service by rules instead of code: the rules of `headgate rules apply`, from a
//! file or from a server, over attributes that are taken from each request.
//!
//! [`RuleSet`] has the rules in force, [`Extractors`] take attributes from requests, and
//! [`RuleLayer`] is the tower middleware that decides with both, on any store.
//!
//! | module | contents |
//! |---|---|
//! | `rule_set` | [`RuleSet`]: the rules in force; replaced as a whole, the last valid ones stay |
//! | `file` | [`RulesFile`]: rules from a file, which is read again when it changes |
//! | `server` | `ServerRules`: rules from a server, with the feature `server` |
//! | `extractors` | [`Extractors`]: attributes of a request |
//! | `layer`, `service` | [`RuleLayer`]: the middleware |
//! | `refusals` | throttled log of requests that are refused without a decision |
//! | `error` | [`RulesError`], [`UnknownPeer`] |

mod error;
mod extractors;
mod file;
mod layer;
mod refusals;
mod rule_set;
#[cfg(feature = "server")]
mod server;
mod service;

pub use headgate_ratelimit::{AttributeValue, Attributes};

#[cfg(feature = "server")]
pub use self::server::ServerRules;
pub use self::{
    error::{RulesError, UnknownPeer},
    extractors::Extractors,
    file::RulesFile,
    layer::RuleLayer,
    rule_set::{RuleSet, RuleVerdict},
    service::RuleService,
};
