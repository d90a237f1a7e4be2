//! YAML files beside the configuration: what is wrong with them is told in the same words.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::{
    problem::{ConfigError, Problem},
    tree::Node,
    yaml,
};

/// A file that was read, and knows the line of each of its keys.
#[derive(Debug)]
pub(crate) struct Document {
    tree: Node,
    name: String,
}

impl Document {
    /// Reads `text`, which stands in the file at `path`.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let tree = yaml::parse(path, text)?;
        Ok(Self { tree, name: path.display().to_string() })
    }

    /// What it says.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        serde_path_to_error::deserialize(self.tree.clone()).map_err(|error| {
            let key = error.path().to_string();
            let problem = Problem::new(key, error.inner().to_string());
            ConfigError::problems(vec![self.place(problem)])
        })
    }

    /// `problem` with the place of its key, or of the file.
    pub(crate) fn place(&self, problem: Problem) -> Problem {
        match problem.found_in(&self.tree) {
            placed if placed.is_placed() => placed,
            unplaced => unplaced.of_file(&self.name),
        }
    }
}
