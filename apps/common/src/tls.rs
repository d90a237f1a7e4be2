//! TLS of an application's listeners, by variables with the words of the server's section `tls`.

use std::{path::PathBuf, sync::Arc};

use headgate::Clock;
use headgate_serve::Tls;
use headgate_tls::{CertificateConfig, ClientCertificates, MinVersion, TlsConfig};

use crate::environment::{Environment, VariableError};

/// Names of the variables.
#[derive(Clone, Copy, Debug)]
pub struct TlsVariables {
    /// Certificates, each followed by those of intermediate CAs, in PEM; comma-separated. Clients
    /// that ask for an unknown name get the first one.
    pub cert_file: &'static str,
    /// Their private keys, in the same order.
    pub key_file: &'static str,
    /// CA certificates that sign client certificates.
    pub client_ca_file: &'static str,
    /// `none`, `optional` or `required`.
    pub client_certificates: &'static str,
    /// `1.2` or `1.3`.
    pub min_version: &'static str,
}

// === impl TlsVariables ===

impl TlsVariables {
    /// Reads the variables, not the files. Without certificates, listeners speak plain text.
    pub fn load(&self, environment: &Environment) -> Result<Option<TlsConfig>, VariableError> {
        let config = TlsConfig {
            certificates: self.certificates(environment)?,
            client_ca_file: environment.get(self.client_ca_file).map(PathBuf::from),
            client_certificates: self.client_certificates(environment)?,
            min_version: self.min_version(environment)?,
        };
        if config.is_enabled() {
            return Ok(Some(config));
        }
        let others = [self.client_ca_file, self.client_certificates, self.min_version];
        match others.into_iter().find(|name| environment.get(name).is_some()) {
            None => Ok(None),
            Some(name) => {
                let problem = format!("requires {}, which is not set", self.cert_file);
                Err(VariableError::new(name, problem))
            }
        }
    }

    /// Reads the files of `config`.
    pub fn open(
        &self,
        config: &TlsConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Tls>, VariableError> {
        Tls::open(config, clock).map(Arc::new).map_err(|problem| {
            let variable = match problem.key() {
                key if key.ends_with(".cert_file") => self.cert_file,
                key if key.ends_with(".key_file") => self.key_file,
                _ => self.client_ca_file,
            };
            VariableError::new(variable, problem.message())
        })
    }

    fn certificates(
        &self,
        environment: &Environment,
    ) -> Result<Vec<CertificateConfig>, VariableError> {
        let certificates: Vec<&str> = environment.list(self.cert_file).collect();
        let keys: Vec<&str> = environment.list(self.key_file).collect();
        if certificates.len() != keys.len() {
            let problem = format!(
                "expected the key of each certificate of {}, in the same order: {} keys for {} \
                 certificates",
                self.cert_file,
                keys.len(),
                certificates.len()
            );
            return Err(VariableError::new(self.key_file, problem));
        }
        if certificates.len() > TlsConfig::MAX_CERTIFICATES {
            let expected = format!("at most {} certificates", TlsConfig::MAX_CERTIFICATES);
            return Err(VariableError::expected(self.cert_file, &expected));
        }
        let pair = |(certificate, key): (&str, &str)| CertificateConfig {
            cert_file: certificate.into(),
            key_file: key.into(),
        };
        Ok(certificates.into_iter().zip(keys).map(pair).collect())
    }

    fn client_certificates(
        &self,
        environment: &Environment,
    ) -> Result<Option<ClientCertificates>, VariableError> {
        let mode = match environment.get(self.client_certificates) {
            None => return Ok(None),
            Some("none") => ClientCertificates::None,
            Some("optional") => ClientCertificates::Optional,
            Some("required") => ClientCertificates::Required,
            Some(_) => {
                let expected = "none, optional or required";
                return Err(VariableError::expected(self.client_certificates, expected));
            }
        };
        if mode != ClientCertificates::None && environment.get(self.client_ca_file).is_none() {
            let problem = format!("requires {}, which is not set", self.client_ca_file);
            return Err(VariableError::new(self.client_certificates, problem));
        }
        Ok(Some(mode))
    }

    fn min_version(&self, environment: &Environment) -> Result<MinVersion, VariableError> {
        match environment.get(self.min_version) {
            None | Some("1.2") => Ok(MinVersion::Tls12),
            Some("1.3") => Ok(MinVersion::Tls13),
            Some(_) => Err(VariableError::expected(self.min_version, "1.2 or 1.3")),
        }
    }
}

#[cfg(test)]
mod tests {
    use headgate::SystemClock;

    use super::*;

    const VARIABLES: TlsVariables = TlsVariables {
        cert_file: "APP_TLS_CERT_FILE",
        key_file: "APP_TLS_KEY_FILE",
        client_ca_file: "APP_TLS_CLIENT_CA_FILE",
        client_certificates: "APP_TLS_CLIENT_CERTIFICATES",
        min_version: "APP_TLS_MIN_VERSION",
    };

    fn load(variables: &[(&str, &str)]) -> Result<Option<TlsConfig>, VariableError> {
        let variables =
            variables.iter().map(|(name, value)| (format!("APP_TLS_{name}"), (*value).to_owned()));
        VARIABLES.load(&Environment::new(variables, "OTHER_", &[])?)
    }

    #[test]
    fn without_certificates_it_is_off() {
        assert_eq!(load(&[]), Ok(None));
        assert_eq!(load(&[("CERT_FILE", "")]), Ok(None));
    }

    #[test]
    fn certificates_and_keys_are_lists_in_the_same_order() {
        let config = load(&[
            ("CERT_FILE", "a.crt, b.crt"),
            ("KEY_FILE", "a.key,b.key"),
            ("CLIENT_CA_FILE", "ca.crt"),
            ("CLIENT_CERTIFICATES", "optional"),
            ("MIN_VERSION", "1.3"),
        ]);
        let pair = |name: &str| CertificateConfig {
            cert_file: format!("{name}.crt").into(),
            key_file: format!("{name}.key").into(),
        };
        let expected = TlsConfig {
            certificates: vec![pair("a"), pair("b")],
            client_ca_file: Some("ca.crt".into()),
            client_certificates: Some(ClientCertificates::Optional),
            min_version: MinVersion::Tls13,
        };
        assert_eq!(config, Ok(Some(expected)));
    }

    #[test]
    fn contradictions_name_the_variable_to_change() {
        let pair = [("CERT_FILE", "a.crt"), ("KEY_FILE", "a.key")];
        let many = vec!["x"; 65].join(",");
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[("CERT_FILE", "a.crt")], "APP_TLS_KEY_FILE: expected the key of each certificate"),
            (&[("KEY_FILE", "a.key")], "APP_TLS_KEY_FILE: expected the key of each certificate"),
            (
                &[("CERT_FILE", &many), ("KEY_FILE", &many)],
                "APP_TLS_CERT_FILE: expected at most 64",
            ),
            (&[("CLIENT_CA_FILE", "ca")], "APP_TLS_CLIENT_CA_FILE: requires APP_TLS_CERT_FILE"),
            (&[("MIN_VERSION", "1.3")], "APP_TLS_MIN_VERSION: requires APP_TLS_CERT_FILE"),
            (
                &[pair[0], pair[1], ("CLIENT_CERTIFICATES", "required")],
                "APP_TLS_CLIENT_CERTIFICATES: requires APP_TLS_CLIENT_CA_FILE",
            ),
            (
                &[pair[0], pair[1], ("CLIENT_CERTIFICATES", "yes")],
                "APP_TLS_CLIENT_CERTIFICATES: expected none, optional or required",
            ),
            (&[pair[0], pair[1], ("MIN_VERSION", "1.1")], "APP_TLS_MIN_VERSION: expected 1.2 or"),
        ];
        for (variables, expected) in cases {
            let problem = load(variables).unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_used_is_reported_with_its_variable() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing.crt");
        let missing = missing.to_str().unwrap();
        let config = load(&[("CERT_FILE", missing), ("KEY_FILE", missing)]).unwrap().unwrap();
        let problem = VARIABLES.open(&config, Arc::new(SystemClock::new())).err().unwrap();
        let problem = problem.to_string();
        assert!(problem.starts_with("APP_TLS_CERT_FILE: "), "{problem}");
        assert!(problem.contains("missing.crt"), "{problem}");
    }
}
