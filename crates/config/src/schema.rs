use std::path::Path;

use serde::de::DeserializeOwned;

use crate::{
    ConfigError, Problem, SectionList, de, environment, secret, section_list, tree::Node, yaml,
};

/// Properties of a program's keys beyond their types.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Prefix of the environment variables: with `HEADGATE__`, `HEADGATE__SERVER__PORT` overrides
    /// `server.port`.
    pub variable_prefix: &'static str,
    /// Keys that can also be given as `{key}_file`, the path of a file that holds the value.
    pub secrets: &'static [&'static str],
    /// Keys that hold a list of sections.
    pub section_lists: &'static [SectionList],
}

impl Schema {
    /// Reads `file`, if given, applies `environment` on top, and returns the configuration.
    ///
    /// `validate` reports values that are valid by themselves but not in combination; the location
    /// of each key is added to its problems.
    ///
    /// # Errors
    ///
    /// Returns every problem at once. Only a file that cannot be read or is not YAML stops earlier.
    pub fn load<T: DeserializeOwned + Default>(
        &self,
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        validate: impl FnOnce(&T) -> Vec<Problem>,
    ) -> Result<T, ConfigError> {
        let tree = file.map_or_else(|| Ok(Node::default()), yaml::read)?;
        self.resolve(tree, environment, validate)
    }

    /// Loads the configuration again, for a program that runs with it. An empty file is refused: it
    /// is being written, was cut off by a full disk, or was a pipe, and would reset every key.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), and for an empty file.
    pub fn load_again<T: DeserializeOwned + Default>(
        &self,
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        validate: impl FnOnce(&T) -> Vec<Problem>,
    ) -> Result<T, ConfigError> {
        let tree = file.map_or_else(|| Ok(Node::default()), yaml::read_content)?;
        self.resolve(tree, environment, validate)
    }

    fn resolve<T: DeserializeOwned + Default>(
        &self,
        mut tree: Node,
        environment: impl IntoIterator<Item = (String, String)>,
        validate: impl FnOnce(&T) -> Vec<Problem>,
    ) -> Result<T, ConfigError> {
        let mut problems = environment::overlay(&mut tree, self.variable_prefix, environment);
        problems.extend(section_list::parse_variables(&mut tree, self.section_lists));
        problems.extend(secret::resolve(&mut tree, self));
        let config = de::read(&tree, &mut problems);
        problems.extend(validate(&config).into_iter().map(|problem| problem.found_in(&tree)));
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::problems(problems)) }
    }
}
