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
        let mut tree = file.map_or_else(|| Ok(Node::default()), yaml::read)?;
        let mut problems = environment::overlay(&mut tree, self.variable_prefix, environment);
        problems.extend(section_list::parse_variables(&mut tree, self.section_lists));
        problems.extend(secret::resolve(&mut tree, self));
        let config = de::read(&tree, &mut problems);
        problems.extend(validate(&config).into_iter().map(|problem| problem.found_in(&tree)));
        if problems.is_empty() { Ok(config) } else { Err(ConfigError::problems(problems)) }
    }
}
