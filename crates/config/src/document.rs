//! YAML files beside the configuration, with the same error messages.

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::{
    de,
    problem::{ConfigError, Problem},
    tree::{Node, Origin},
    yaml,
};

/// A parsed YAML file that knows the line of each key.
#[derive(Debug)]
pub struct YamlDocument {
    tree: Node,
    name: String,
}

impl YamlDocument {
    /// Parses `text`, the contents of the file at `path`.
    ///
    /// # Errors
    ///
    /// Returns the position of the first syntax error.
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

    /// Deserializes the file, and returns every mismatch.
    ///
    /// Keys that do not match are left out of the value: all keys of `T` need a default. There is
    /// no value if nothing can be read, or if there are too many mismatches to report.
    pub fn read_all<T: DeserializeOwned>(&self) -> (Option<T>, Vec<Problem>) {
        let mut problems = Vec::new();
        let value = de::read_items(&self.tree, &mut problems);
        (value, problems.into_iter().map(|problem| self.locate(problem)).collect())
    }

    /// Returns `problem` with the line of its key or, if the key is missing, of the section that
    /// it is missing in; with the name of the file if that is empty.
    #[must_use]
    pub fn locate(&self, problem: Problem) -> Problem {
        match &self.tree.closest(problem.key()).origin {
            Origin::Default => problem.of_file(&self.name),
            origin => problem.from(origin),
        }
    }
}
