use std::{collections::BTreeMap, fs, str::FromStr};

use super::ConfigError;

/// The environment. A variable that is empty is as good as none.
pub(super) struct Variables(BTreeMap<String, String>);

impl Variables {
    /// All of `variables`. One that begins with `prefix` and is not `known` is a mistake.
    pub(super) fn new(
        variables: impl IntoIterator<Item = (String, String)>,
        prefix: &str,
        known: &[&str],
    ) -> Result<Self, ConfigError> {
        let variables: BTreeMap<_, _> = variables.into_iter().collect();
        let stranger = |name: &&String| name.starts_with(prefix) && !known.contains(&name.as_str());
        match variables.keys().find(stranger) {
            None => Ok(Self(variables)),
            Some(name) => {
                let problem = format!("there is no such variable, but {}", known.join(", "));
                Err(ConfigError::new(name, problem))
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The value of `name`, which should be what `expected` says.
    pub(super) fn parse<T: FromStr>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, ConfigError> {
        let wrong = |_| ConfigError::new(name, format!("expected {expected}"));
        self.get(name).map(str::parse).transpose().map_err(wrong)
    }

    /// The value of `name`, or what is in the file that `file` names.
    pub(super) fn written_or_in_file(
        &self,
        name: &str,
        file: &str,
    ) -> Result<Option<String>, ConfigError> {
        match (self.get(name), self.get(file)) {
            (None, None) => Ok(None),
            (Some(value), None) => Ok(Some(value.to_owned())),
            (None, Some(path)) => match fs::read_to_string(path) {
                Ok(value) => Ok(Some(value.trim().to_owned())),
                Err(error) => Err(ConfigError::new(file, error.to_string())),
            },
            (Some(_), Some(_)) => {
                Err(ConfigError::new(file, format!("{name} is set too: set one of them")))
            }
        }
    }
}
