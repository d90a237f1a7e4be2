//! DynamoDB: tables, endpoint and credentials.

use std::{fmt::Display, fs, time::Duration};

use headgate_app_common::{Environment, VariableError};
use headgate_store_dynamodb::{
    DynamoDbConfig, DynamoDbConfigError, aws_sdk_dynamodb::config::Credentials,
};

/// Names of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Cooldowns.
    pub rate_limits: String,
    /// Posts.
    pub posts: String,
}

pub(super) const PREFIX: &str = "DYNAMODB_TABLE_PREFIX";
pub(super) const ENDPOINT: &str = "DYNAMODB_ENDPOINT";
pub(super) const CA_FILE: &str = "DYNAMODB_CA_FILE";
pub(super) const TIMEOUT: &str = "DYNAMODB_TIMEOUT_MS";
pub(super) const REGION: &str = "AWS_REGION";
pub(super) const KEY: &str = "AWS_ACCESS_KEY_ID";
pub(super) const KEY_SECRET: &str = "AWS_SECRET_ACCESS_KEY";
pub(super) const SESSION: &str = "AWS_SESSION_TOKEN";

impl Tables {
    pub(super) fn load(environment: &Environment) -> Result<Self, VariableError> {
        let prefix = environment.get(PREFIX).unwrap_or("aruaruarena");
        if prefix.len() > 200 {
            return Err(VariableError::new(PREFIX, "expected at most 200 characters"));
        }
        Ok(Self { rate_limits: format!("{prefix}-rate-limits"), posts: format!("{prefix}-posts") })
    }
}

/// Connection settings of the table of cooldowns, which are unused if both are elsewhere.
pub(super) fn load(
    environment: &Environment,
    tables: &Tables,
) -> Result<DynamoDbConfig, VariableError> {
    let region = environment.get(REGION).unwrap_or("ap-northeast-1");
    let credentials = credentials(environment)?;
    let config = DynamoDbConfig::new(region, &tables.rate_limits, credentials);
    let config = config.map_err(|error| match error {
        DynamoDbConfigError::Table(_) => VariableError::new(PREFIX, error.to_string()),
        _ => VariableError::new(REGION, error.to_string()),
    })?;
    let timeout = environment.milliseconds(TIMEOUT, 1..=60_000, Duration::from_millis(500))?;
    let config = config.timeout(timeout);
    let config = match environment.get(ENDPOINT) {
        None => config,
        Some(url) => {
            let config = config.endpoint(url);
            config.map_err(|error| VariableError::new(ENDPOINT, error.to_string()))?
        }
    };
    let Some(path) = environment.get(CA_FILE) else {
        return Ok(config);
    };
    let invalid = |error: &dyn Display| VariableError::new(CA_FILE, format!("{path}: {error}"));
    let pem = fs::read(path).map_err(|error| invalid(&error))?;
    config.root_certificate(pem).map_err(|error| invalid(&error))
}

/// Credentials from the environment. Without any, placeholders that DynamoDB Local accepts and AWS
/// does not.
fn credentials(environment: &Environment) -> Result<Credentials, VariableError> {
    let session = environment.get(SESSION).map(str::to_owned);
    let (id, secret) = match (environment.get(KEY), environment.get(KEY_SECRET)) {
        (Some(id), Some(secret)) => (id, secret),
        (None, None) => ("local", "local"),
        (Some(_), None) => {
            return Err(VariableError::new(
                KEY_SECRET,
                "is missing; it belongs to AWS_ACCESS_KEY_ID",
            ));
        }
        (None, Some(_)) => {
            return Err(VariableError::new(KEY, "is missing; it belongs to AWS_SECRET_ACCESS_KEY"));
        }
    };
    Ok(Credentials::new(id, secret, session, None, "environment"))
}
