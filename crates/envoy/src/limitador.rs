//! Converts limits of limitador into domain files, or into rules over attributes.
//!
//! A limit of limitador applies to all requests that meet its conditions, and counts by its
//! variables. In a domain file, it applies to descriptors with exactly these entries: those of the
//! conditions, then those of the variables, in the order of the file. A rule applies as in
//! limitador, if the entries of descriptors are attributes.

mod entry;
mod expression;
mod predicate;
mod rules;
mod tree;
mod when;

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use headgate_config::{Bounded, ConfigError, Problem, YamlDocument};
use serde::Deserialize;

pub use self::rules::{RulesConversion, convert_to_rules};
use self::tree::{DescriptorTree, LimitAmount};
use crate::{compiled::compile, source::SourceFile};

/// The result of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// One file for each namespace with a limit that was converted.
    pub files: Vec<ConvertedFile>,
    /// The limits that cannot be converted, each with the reason.
    pub skipped: Vec<Problem>,
}

/// A domain file made from limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertedFile {
    /// The domain: limitador's namespace.
    pub domain: String,
    /// Contents of the file.
    pub yaml: String,
}

/// A limit of limitador.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a limit")]
struct LimitadorLimit {
    namespace: String,
    max_value: Bounded<0, { u32::MAX as u64 }>,
    seconds: Bounded<1, 31_622_400>,
    #[serde(default)]
    name: String,
    /// Only used by limitador's own API.
    #[serde(default, rename = "id")]
    _id: String,
    #[serde(default)]
    conditions: Vec<String>,
    #[serde(default)]
    variables: Vec<String>,
}

/// The reason a limit cannot be converted.
struct Unsupported {
    /// The key, relative to the limit.
    key: String,
    message: String,
}

/// Converts the limits in the file at `path`.
///
/// # Errors
///
/// The file cannot be read, or is not a list of limits.
pub fn convert(path: &Path) -> Result<Conversion, ConfigError> {
    let document = YamlDocument::parse(path, &SourceFile::read(path)?.text)?;
    let limits: Vec<LimitadorLimit> = document.read()?;
    let mut domains: BTreeMap<String, DescriptorTree> = BTreeMap::new();
    let mut skipped = Vec::new();
    for (index, limit) in limits.into_iter().enumerate() {
        let inserted = entry::entries(&limit).and_then(|entries| {
            let amount = LimitAmount {
                max: limit.max_value.get(),
                seconds: limit.seconds.get(),
                name: limit.name,
            };
            domains.entry(limit.namespace).or_default().insert(&entries, amount)
        });
        if let Err(Unsupported { key, message }) = inserted {
            skipped.push(document.locate(Problem::new(format!("[{index}]{key}"), message)));
        }
    }
    let files = domains.into_iter().filter(|(_, tree)| !tree.is_empty());
    let files = files.map(|(domain, tree)| {
        let yaml = domain_file(&domain, &tree);
        // Reports limits that a domain file does not allow.
        compile(&SourceFile::new(path, &yaml))?;
        Ok(ConvertedFile { domain, yaml })
    });
    Ok(Conversion { files: files.collect::<Result<_, ConfigError>>()?, skipped })
}

/// Returns the contents of a domain file; its header lists the descriptors that Envoy must send.
fn domain_file(domain: &str, tree: &DescriptorTree) -> String {
    let mut yaml = "# Converted from limits of limitador. For each limit, let Envoy send a \
                    descriptor with these entries, in this order:\n"
        .to_owned();
    // Writing to a string cannot fail.
    for descriptor in tree.descriptors() {
        let _ = writeln!(yaml, "#   {descriptor}");
    }
    let _ = writeln!(yaml, "domain: {}\ndescriptors:", yaml_string(domain));
    tree.write(&mut yaml, 1);
    yaml
}

/// Returns a quoted YAML string: JSON's strings are valid YAML.
fn yaml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
