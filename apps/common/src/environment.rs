//! Environment variables, the only configuration of an application.

use std::{collections::BTreeMap, fs, ops::RangeInclusive, str::FromStr, time::Duration};

use headgate_guard::{Cidr, ForwardedBy, TrustedProxies};
use thiserror::Error;

use crate::{program::Variable, secret::Secret};

/// Environment variables. An empty one counts as unset.
pub struct Environment(BTreeMap<String, String>);

/// An invalid variable.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{variable}: {problem}")]
pub struct VariableError {
    variable: String,
    problem: String,
}

// === impl Environment ===

impl Environment {
    /// Takes all of `variables`.
    ///
    /// # Errors
    ///
    /// A variable begins with `prefix` and is not one of `known`. Variables that Kubernetes sets for
    /// services are ignored.
    pub fn new(
        variables: impl IntoIterator<Item = (String, String)>,
        prefix: &str,
        known: &[Variable],
    ) -> Result<Self, VariableError> {
        let variables: BTreeMap<_, _> = variables.into_iter().collect();
        let is_known = |name: &str| known.iter().any(|(known, _)| *known == name);
        let unknown = variables.iter().find(|(name, value)| {
            name.starts_with(prefix) && !is_known(name) && !is_service_link(name, value)
        });
        match unknown {
            None => Ok(Self(variables)),
            Some((name, _)) => {
                let known: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
                let problem = format!("unknown variable; known variables: {}", known.join(", "));
                Err(VariableError::new(name, problem))
            }
        }
    }

    /// Value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Parsed value of a variable, of which `expected` is the description.
    pub fn parse<T: FromStr>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, VariableError> {
        let invalid = |_| VariableError::expected(name, expected);
        self.get(name).map(str::parse).transpose().map_err(invalid)
    }

    /// Comma-separated items of a variable.
    pub fn list<'e>(&'e self, name: &str) -> impl Iterator<Item = &'e str> {
        let items = self.get(name).unwrap_or_default().split(',').map(str::trim);
        items.filter(|item| !item.is_empty())
    }

    /// Value of a variable in seconds.
    pub fn seconds(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
        default: Duration,
    ) -> Result<Duration, VariableError> {
        let seconds = self.bounded(name, "seconds", range)?;
        Ok(seconds.map_or(default, Duration::from_secs))
    }

    /// Value of a variable in milliseconds.
    pub fn milliseconds(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
        default: Duration,
    ) -> Result<Duration, VariableError> {
        let milliseconds = self.bounded(name, "milliseconds", range)?;
        Ok(milliseconds.map_or(default, Duration::from_millis))
    }

    /// Number of these units within `range`.
    fn bounded(
        &self,
        name: &str,
        units: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, VariableError> {
        let expected = format!("{units}, {} to {}", range.start(), range.end());
        match self.parse(name, &expected)? {
            Some(number) if !range.contains(&number) => {
                Err(VariableError::expected(name, &expected))
            }
            number => Ok(number),
        }
    }

    /// Value of the variable `name`, or content of the file that the variable `file` names.
    pub fn value_or_file(&self, name: &str, file: &str) -> Result<Option<String>, VariableError> {
        match (self.get(name), self.get(file)) {
            (None, None) => Ok(None),
            (Some(value), None) => Ok(Some(value.to_owned())),
            (None, Some(path)) => match fs::read_to_string(path) {
                Ok(value) => Ok(Some(value.trim().to_owned())),
                Err(error) => Err(VariableError::new(file, error.to_string())),
            },
            (Some(_), Some(_)) => {
                Err(VariableError::new(file, format!("{name} is set, too; set one of them")))
            }
        }
    }

    /// A secret of at least [`Secret::MIN_BYTES`], from a variable or a file.
    pub fn secret(&self, name: &str, file: &str) -> Result<Option<Secret>, VariableError> {
        let secret = self.value_or_file(name, file)?;
        if secret.as_ref().is_some_and(|secret| secret.len() < Secret::MIN_BYTES) {
            let variable = if self.get(name).is_some() { name } else { file };
            let expected = "at least 16 bytes, such as from `openssl rand -hex 32`";
            return Err(VariableError::expected(variable, expected));
        }
        Ok(secret.map(Secret::new))
    }

    /// Trusted proxies, and the header in which they forward a client's address.
    pub fn proxies(&self, ranges: &str, header: &str) -> Result<TrustedProxies, VariableError> {
        let proxies: TrustedProxies = self
            .list(ranges)
            .map(str::parse::<Cidr>)
            .collect::<Result<_, _>>()
            .map_err(|error| VariableError::new(ranges, error.to_string()))?;
        let header: Option<ForwardedBy> = self.parse(header, ForwardedBy::EXPECTED)?;
        Ok(proxies.forwarded_by(header.unwrap_or_default()))
    }
}

/// Returns true for a variable that Kubernetes sets for a service, such as `POSTS_SERVICE_HOST` for
/// one that is called `posts`.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.split("_PORT_").skip(1).any(is_number)
        || (name.ends_with("_PORT") && value.contains("://"))
}

// === impl VariableError ===

impl VariableError {
    /// Creates the error of a variable.
    pub fn new(variable: &str, problem: impl Into<String>) -> Self {
        Self { variable: variable.to_owned(), problem: problem.into() }
    }

    /// A value that is not as `expected`.
    pub fn expected(variable: &str, expected: &str) -> Self {
        Self::new(variable, format!("expected {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Result<Environment, VariableError> {
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let known = [("APP_A", "A."), ("APP_KEY", "Key."), ("APP_KEY_FILE", "File.")];
        Environment::new(variables, "APP_", &known)
    }

    #[test]
    fn an_unknown_variable_is_an_error_only_with_the_prefix() {
        assert_eq!(environment(&[("PATH", "/bin")]).unwrap().get("APP_A"), None);
        let error = environment(&[("APP_B", "1")]).err().unwrap();
        let expected = "APP_B: unknown variable; known variables: APP_A, APP_KEY, APP_KEY_FILE";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn variables_of_kubernetes_services_are_ignored() {
        for (name, value) in [
            ("APP_SERVICE_HOST", "10.0.0.1"),
            ("APP_API_SERVICE_PORT", "80"),
            ("APP_SERVICE_PORT_HTTP", "80"),
            ("APP_PORT", "tcp://10.0.0.1:80"),
            ("APP_PORT_80_TCP_PROTO", "tcp"),
        ] {
            assert!(environment(&[(name, value)]).is_ok(), "{name}");
        }
        for (name, value) in [("APP_PORT", "80"), ("APP_PORT_NAME", "x"), ("APP_SERVICE", "x")] {
            assert!(environment(&[(name, value)]).is_err(), "{name}");
        }
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let environment = environment(&[("APP_A", "")]).unwrap();
        assert_eq!(environment.parse::<u8>("APP_A", "a number"), Ok(None));
        assert_eq!(environment.seconds("APP_A", 1..=9, Duration::ZERO), Ok(Duration::ZERO));
    }

    #[test]
    fn times_are_bounded() {
        for (value, number) in
            [("1", Some(1)), ("9", Some(9)), ("0", None), ("10", None), ("x", None)]
        {
            let environment = environment(&[("APP_A", value)]).unwrap();
            let seconds = environment.seconds("APP_A", 1..=9, Duration::ZERO);
            assert_eq!(seconds.ok(), number.map(Duration::from_secs));
            let milliseconds = environment.milliseconds("APP_A", 1..=9, Duration::ZERO);
            assert_eq!(milliseconds.ok(), number.map(Duration::from_millis));
        }
    }

    #[test]
    fn a_secret_comes_from_a_variable_or_a_file_and_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "0123456789abcdef\n").unwrap();
        let path = path.to_str().unwrap();
        let secret = |variables: &[(&str, &str)]| {
            environment(variables).unwrap().secret("APP_KEY", "APP_KEY_FILE")
        };
        let from_file = secret(&[("APP_KEY_FILE", path)]).unwrap().unwrap();
        assert_eq!(from_file.reveal(), "0123456789abcdef");
        assert_eq!(format!("{from_file:?}"), "***");
        assert_eq!(secret(&[("APP_KEY", "0123456789abcdef")]), Ok(Some(from_file)));
        let both = secret(&[("APP_KEY", "0123456789abcdef"), ("APP_KEY_FILE", path)]);
        assert!(both.unwrap_err().to_string().contains("set one of them"));
        let short = secret(&[("APP_KEY", "hunter2")]).unwrap_err().to_string();
        assert!(short.starts_with("APP_KEY: expected at least 16 bytes"), "{short}");
        assert!(!short.contains("hunter2"));
    }
}
