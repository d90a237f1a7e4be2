//! Where DynamoDB is.

use std::time::Duration;

use headgate_store_dynamodb::{
    ConfigError as PlaceError, DynamoDbConfig, aws_sdk_dynamodb::config::Credentials,
};

use super::{ConfigError, variables::Variables};

/// What tables are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// Cooldowns.
    pub rate_limits: String,
    /// Posts.
    pub posts: String,
}

const PREFIX: &str = "DYNAMODB_TABLE_PREFIX";
const ENDPOINT: &str = "DYNAMODB_ENDPOINT";
const TIMEOUT: &str = "DYNAMODB_TIMEOUT_MS";
const REGION: &str = "AWS_REGION";
const KEY: &str = "AWS_ACCESS_KEY_ID";
const KEY_SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION: &str = "AWS_SESSION_TOKEN";

impl Tables {
    pub(super) fn load(variables: &Variables) -> Result<Self, ConfigError> {
        let prefix = variables.get(PREFIX).unwrap_or("aruaruarena");
        if prefix.len() > 200 {
            return Err(ConfigError::new(PREFIX, "expected at most 200 characters"));
        }
        Ok(Self { rate_limits: format!("{prefix}-rate-limits"), posts: format!("{prefix}-posts") })
    }
}

/// The place of the table of cooldowns. What is kept elsewhere never asks there.
pub(super) fn load(variables: &Variables, tables: &Tables) -> Result<DynamoDbConfig, ConfigError> {
    let region = variables.get(REGION).unwrap_or("ap-northeast-1");
    let credentials = credentials(variables)?;
    let place = DynamoDbConfig::new(region, &tables.rate_limits, credentials);
    let place = place.map_err(|error| match error {
        PlaceError::Table(_) => ConfigError::new(PREFIX, error.to_string()),
        _ => ConfigError::new(REGION, error.to_string()),
    })?;
    let timeout = variables.parse::<u32>(TIMEOUT, "milliseconds, 1 to 60000")?.unwrap_or(500);
    if !(1..=60_000).contains(&timeout) {
        return Err(ConfigError::new(TIMEOUT, "expected milliseconds, 1 to 60000"));
    }
    let place = place.timeout(Duration::from_millis(timeout.into()));
    match variables.get(ENDPOINT) {
        None => Ok(place),
        Some(url) => {
            place.endpoint(url).map_err(|error| ConfigError::new(ENDPOINT, error.to_string()))
        }
    }
}

/// The environment's credentials. Without any, those that a DynamoDB on this machine takes: Amazon's does not.
fn credentials(variables: &Variables) -> Result<Credentials, ConfigError> {
    let session = variables.get(SESSION).map(str::to_owned);
    let (id, secret) = match (variables.get(KEY), variables.get(KEY_SECRET)) {
        (Some(id), Some(secret)) => (id, secret),
        (None, None) => ("local", "local"),
        (Some(_), None) => return Err(ConfigError::new(KEY_SECRET, "is missing beside its id")),
        (None, Some(_)) => return Err(ConfigError::new(KEY, "is missing beside its secret")),
    };
    Ok(Credentials::new(id, secret, session, None, "environment"))
}
