//! YAML files beside the configuration, with the same error messages.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::{
    problem::{ConfigError, Problem},
    tree::Node,
    yaml,
};

/// A parsed YAML file that knows the line of each key.
#[derive(Debug)]
pub struct Document {
    tree: Node,
    name: String,
}

impl Document {
    /// Parses `text`, the contents of the file at `path`.
    ///
    /// # Errors
    ///
    /// Returns the position of what is not YAML.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let tree = yaml::parse(path, text)?;
        Ok(Self { tree, name: path.display().to_string() })
    }

    /// Deserializes the file.
    ///
    /// # Errors
    ///
    /// Returns the first key that does not match `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        serde_path_to_error::deserialize(self.tree.clone()).map_err(|error| {
            let key = error.path().to_string();
            let problem = Problem::new(key, error.inner().to_string());
            ConfigError::problems(vec![self.locate(problem)])
        })
    }

    /// Returns `problem` with the line of its key, or else with the name of the file.
    #[must_use]
    pub fn locate(&self, problem: Problem) -> Problem {
        match problem.found_in(&self.tree) {
            located if located.is_located() => located,
            unlocated => unlocated.of_file(&self.name),
        }
    }
}
