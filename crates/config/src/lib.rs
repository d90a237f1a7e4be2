//! Layered configuration: a YAML file, overridden by environment variables, with secrets in files
//! of their own.
//!
//! A program describes secrets and lists among its keys in a [`Schema`] and loads a type of its own
//! that implements [`Deserialize`](serde::Deserialize). Loading reports every problem at once, each
//! with its file and line or its variable. Values stay text until the type of their key is known:
//! `0.10` is a version where a string is expected, and environment variables, which are always
//! text, can set every key.
//!
//! | module | contents |
//! |---|---|
//! | `schema` | [`Schema`]: the prefix of variables, secrets, lists of sections; loads a configuration |
//! | `document` | [`YamlDocument`]: a YAML file beside the configuration, with the same error messages |
//! | `problem` | [`ConfigError`] and [`Problem`]: the errors, each with its location |
//! | `print` | [`Print`]: the values in effect as YAML or JSON, secrets masked; [`Change`]: a key whose value differs |
//! | `live_duration` | [`LiveDuration`]: a duration that a reload can change |
//! | `bounded`, `duration`, `secret` | types of values: [`Bounded`], [`ConfigDuration`], [`Secret`] |
//! | `text_file` | reading files of a bounded size |
//! | `regular_file`, `file_reads` | [`open_regular_file`] and [`FileReads`]: files that a task polls, whose reads may hang |
//! | `tree`, `yaml`, `environment`, `section_list`, `de` | the layers, and their deserialization |
//!
//! ```
//! use headgate_config::{Bounded, Schema};
//! use serde::Deserialize;
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Config {
//!     server: Server,
//! }
//!
//! #[derive(Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Server {
//!     port: Bounded<1, 65_535>,
//! }
//!
//! impl Default for Server {
//!     fn default() -> Self {
//!         Self { port: Bounded::of::<8080>() }
//!     }
//! }
//!
//! const SCHEMA: Schema = Schema { variable_prefix: "EXAMPLE__", secrets: &[], section_lists: &[] };
//!
//! let variables = [("EXAMPLE__SERVER__PORT".to_owned(), "9000".to_owned())];
//! let config: Config = SCHEMA.load(None, variables, |_| Vec::new())?;
//! assert_eq!(config.server.port.get(), 9000);
//!
//! let variables = [("EXAMPLE__SERVER__PORT".to_owned(), "0".to_owned())];
//! let error = SCHEMA.load::<Config>(None, variables, |_| Vec::new()).err().unwrap();
//! assert_eq!(
//!     error.to_string(),
//!     "invalid configuration:\n  server.port (EXAMPLE__SERVER__PORT): \
//!      expected a whole number from 1 to 65535, got \"0\""
//! );
//! # Ok::<(), headgate_config::ConfigError>(())
//! ```

mod bounded;
mod de;
mod document;
mod duration;
mod environment;
mod file_reads;
mod live_duration;
mod print;
mod problem;
mod regular_file;
mod schema;
mod secret;
mod section_list;
mod text_file;
mod tree;
mod yaml;

pub use self::{
    bounded::Bounded,
    de::TYPED,
    document::YamlDocument,
    duration::ConfigDuration,
    file_reads::{FileReads, ReadFailure},
    live_duration::LiveDuration,
    print::{Change, Print, Printed},
    problem::{ConfigError, Problem, quoted},
    regular_file::open_regular_file,
    schema::Schema,
    secret::Secret,
    section_list::SectionList,
};

#[cfg(test)]
mod tests;
