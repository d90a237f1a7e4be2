//! Limits of limitador, as files of domains.
//!
//! There, a limit is about all requests that fulfil its conditions, and counts by its variables. Here, it is about descriptors
//! that bring exactly these entries: the conditions' first, then the variables', in the order of the file.

mod branch;
mod step;

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use headgate_config::{Bounded, ConfigError, Document, Problem};
use serde::Deserialize;

use self::branch::{Amount, Branch, quoted};
use super::source::{self, text};

/// What became of a file of limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// One file for each namespace that has a limit left.
    pub files: Vec<Converted>,
    /// The limits that cannot be expressed, each with its reason.
    pub left_out: Vec<Problem>,
}

/// A file that was made of limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The domain, which was a namespace.
    pub domain: String,
    /// The file's text.
    pub yaml: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a limit")]
struct LimitEntry {
    namespace: String,
    max_value: Bounded<0, { u32::MAX as u64 }>,
    seconds: Bounded<1, 31_622_400>,
    #[serde(default)]
    name: String,
    /// Only limitador's own interface knows limits by it.
    #[serde(default, rename = "id")]
    _id: String,
    #[serde(default)]
    conditions: Vec<String>,
    #[serde(default)]
    variables: Vec<String>,
}

/// Converts the limits in the file at `path`.
///
/// # Errors
///
/// The file cannot be read, or is no list of limits.
pub fn convert(path: &Path) -> Result<Conversion, ConfigError> {
    let document = Document::parse(path, &text(path)?)?;
    let limits: Vec<LimitEntry> = document.read()?;
    let mut domains: BTreeMap<String, Branch> = BTreeMap::new();
    let mut left_out = Vec::new();
    for (place, limit) in limits.into_iter().enumerate() {
        let steps = step::steps(&limit);
        let put = steps.and_then(|steps| {
            let amount = Amount {
                max: limit.max_value.get(),
                seconds: limit.seconds.get(),
                name: limit.name,
            };
            domains.entry(limit.namespace).or_default().put(&steps, amount)
        });
        if let Err((key, message)) = put {
            left_out.push(document.locate(Problem::new(format!("[{place}]{key}"), message)));
        }
    }
    let files = domains.into_iter().filter(|(_, branch)| !branch.is_empty());
    let files = files.map(|(domain, branch)| {
        let yaml = file(&domain, &branch);
        source::domain(&(path.to_owned(), yaml.as_str().into()))?;
        Ok(Converted { domain, yaml })
    });
    Ok(Conversion { files: files.collect::<Result<_, ConfigError>>()?, left_out })
}

/// The text of a domain's file; its head says what Envoy must send.
fn file(domain: &str, branch: &Branch) -> String {
    let mut yaml = "# Converted from limits of limitador. For each limit, let Envoy send a descriptor with these entries, \
                    in this order:\n"
        .to_owned();
    // Writing to a text cannot fail.
    for descriptor in branch.descriptors() {
        let _ = writeln!(yaml, "#   {descriptor}");
    }
    let _ = writeln!(yaml, "domain: {}\ndescriptors:", quoted(domain));
    branch.write(&mut yaml, 1);
    yaml
}
