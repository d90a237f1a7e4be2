//! What Envoy's rate limit filters are answered: domains, nested descriptors, and what each may take.
//!
//! | module | what it owns |
//! |---|---|
//! | `file` | what a file says, before anybody knows whether it makes sense |
//! | `unit`, `rule` | so many in so long, and everything else that a descriptor says |
//! | `metadata` | what a descriptor tells Envoy |
//! | `domain`, `pattern` | the descriptors of a domain, compiled for matching; immutable |
//! | `source`, `catalog` | the files on disk, and the domains in force |
//! | `xds` | domains from a management server, in place of files |
//! | `configurator` | whichever of the two the operator chose |
//! | `question`, `plan`, `asked`, `verdict` | what is asked, what that asks of the store, and what it answers |
//! | `limits` | the use case: match, ask the store once, count |
//! | `key` | the name of a descriptor's counter |
//! | `limitador`, `report` | limits of another service as such files, and a file in plain words |

mod asked;
mod catalog;
mod configurator;
mod domain;
mod file;
mod key;
mod limitador;
mod limits;
mod metadata;
mod pattern;
mod plan;
mod question;
mod report;
mod rule;
mod source;
mod unit;
mod verdict;
mod xds;

pub(crate) use self::{
    configurator::Configurator,
    limits::{EnvoyLimits, Settings},
    metadata::Metadata,
    plan::AskError,
    question::{Descriptor, Hits, MAX_DESCRIPTORS, MAX_ENTRIES, Override, Question},
    rule::Rate,
    unit::Unit,
    verdict::{Status, Verdict},
};
pub use self::{
    limitador::{Conversion, Converted, convert as convert_limitador},
    report::{Understood, check},
};
