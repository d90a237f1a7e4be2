//! Envoy's global rate limit service: finds the limit of each descriptor of a request, and admits
//! the request if all of them do.
//!
//! [`Configurator`] loads domains from files or follows a management server; [`EnvoyLimits`]
//! answers requests. The gRPC service itself is in `headgate-grpc`.
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`EnvoyConfig`]: the `envoy` section of the configuration |
//! | `file` | the schema of a domain file: the keys of envoyproxy/ratelimit and our extensions |
//! | `unit`, `rule`, `metadata` | the limit of a descriptor, validated |
//! | `domain`, `pattern` | a domain's descriptors, compiled for matching; immutable |
//! | `source`, `compiled` | the files on disk, and the domains compiled from them |
//! | `catalog`, `reloader` | the domains in force, and the task that reloads files |
//! | `xds` | domains from a management server, instead of files |
//! | `configurator` | files or xDS, as configured |
//! | `attributes` | a descriptor's entries as attributes, for rules |
//! | `request`, `plan`, `counter`, `verdict` | a request, the checks it needs, and the answer |
//! | `limits` | the use case: match, decide in one batch, count |
//! | `counter_name` | the key of a descriptor's counter in the store |
//! | `metrics` | the metrics of all this |
//! | `limitador`, `summary` | for `headgate import`: converts limitador's limits to files or rules, summarizes a file |

mod attributes;
mod catalog;
mod compiled;
mod config;
mod configurator;
mod counter;
mod counter_name;
mod domain;
mod file;
mod limitador;
mod limits;
mod metadata;
mod metrics;
mod pattern;
mod plan;
mod reloader;
mod request;
mod rule;
mod source;
mod summary;
mod unit;
mod verdict;
mod xds;

pub use self::{
    catalog::EnvoyCatalog,
    config::{DeniedConsumes, EnvoyAuth, EnvoyConfig, NodeId, ResponseHeaders, XdsConfig, XdsUrl},
    configurator::{Configurator, PreparedSource, SourceControl},
    limitador::{
        Conversion, ConvertedFile, RulesConversion, convert as convert_limitador,
        convert_to_rules as convert_limitador_to_rules,
    },
    limits::{EnvoyLimits, Settings},
    metadata::Metadata,
    metrics::{EnvoyMetrics, RequestTotals},
    plan::EnvoyError,
    request::{Descriptor, EnvoyRequest, Hits, MAX_DESCRIPTORS, MAX_ENTRIES},
    rule::{DescriptorRule, Rate},
    summary::{EntrySummary, FileSummary, summarize},
    unit::Unit,
    verdict::{DescriptorStatus, EnvoyVerdict},
};
