//! The log, to standard error as text or JSON.

mod access;

use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::LevelFilter,
    layer::{Filter, SubscriberExt},
    registry::Registry,
    reload::{self, Handle},
    util::SubscriberInitExt,
};

use crate::config::{LogConfig, LogFormat};

pub use self::access::{ACCESS, AccessLog};

/// Logging that cannot be started.
#[derive(Debug, Error)]
pub enum LogError {
    /// `RUST_LOG` is not a filter.
    #[error("RUST_LOG does not parse: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Logging was started before.
    #[error("cannot start logging: {0}")]
    Taken(#[from] tracing_subscriber::util::TryInitError),
}

/// Changes the level of the log.
#[derive(Clone, Debug)]
pub struct LogControl {
    /// `None` if `RUST_LOG` decides.
    level: Option<Handle<LevelFilter, Registry>>,
}

impl LogControl {
    /// Changes the level, unless `RUST_LOG` decides.
    pub fn set_level(&self, config: &LogConfig) {
        // It fails only if logging is gone.
        let _ = self.level.as_ref().map(|handle| handle.reload(level(config)));
    }
}

/// Starts logging for the whole process. `rust_log`, where given, overrides the level.
pub fn start(config: &LogConfig, rust_log: Option<&str>) -> Result<LogControl, LogError> {
    let (filter, level): (Box<dyn Filter<Registry> + Send + Sync>, _) =
        if let Some(filter) = rust_log.filter(|filter| !filter.is_empty()) {
            (Box::new(EnvFilter::builder().parse(filter)?), None)
        } else {
            // A level alone is cheaper than a filter with directives.
            let (filter, handle) = reload::Layer::new(level(config));
            (Box::new(filter), Some(handle))
        };
    let colours = io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colours);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    Ok(LogControl { level })
}

fn level(config: &LogConfig) -> LevelFilter {
    config.level.to_string().parse().unwrap_or(LevelFilter::INFO)
}
