use std::{collections::BTreeMap, str::FromStr};

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
        let ours = |name: &&String| name.starts_with(prefix);
        match variables.keys().filter(ours).find(|name| !known.contains(&name.as_str())) {
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
}
