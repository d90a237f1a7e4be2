//! The log, to standard error as text or JSON.

mod access;
mod line_queue;

use std::{
    fs::File,
    io::{self, IsTerminal},
    os::fd::AsFd,
    sync::Arc,
    time::Duration,
};

use prometheus::IntCounter;
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
use self::line_queue::LineQueue;

/// Maximum time to write the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Logging that cannot be started.
#[derive(Debug, Error)]
pub enum LogError {
    /// `RUST_LOG` is not a filter.
    #[error("RUST_LOG does not parse: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Logging was started before.
    #[error("cannot start logging: {0}")]
    Taken(#[from] tracing_subscriber::util::TryInitError),
    /// The thread that writes the log cannot be started.
    #[error("cannot start the thread that writes the log: {0}")]
    Thread(#[from] io::Error),
    /// A metric is invalid.
    #[error(transparent)]
    Metric(#[from] prometheus::Error),
}

/// Changes the level of the log, and writes its last lines.
#[derive(Clone, Debug)]
pub struct LogControl {
    /// `None` if `RUST_LOG` decides.
    level: Option<Handle<LevelFilter, Registry>>,
    lines: Arc<LineQueue>,
}

/// Writes the last lines of the log when it is dropped, which takes at most a second.
#[derive(Debug)]
#[must_use = "the last lines are written when it is dropped"]
pub struct FlushOnDrop(Arc<LineQueue>);

// === impl LogControl ===

impl LogControl {
    /// Changes the level, unless `RUST_LOG` decides.
    pub fn set_level(&self, config: &LogConfig) {
        // It fails only if logging is gone.
        let _ = self.level.as_ref().map(|handle| handle.reload(level(config)));
    }

    /// Returns the number of lines that were dropped because standard error was not read in time.
    pub fn dropped_lines(&self) -> &IntCounter {
        self.lines.dropped()
    }

    /// Returns a guard to hold until the process ends.
    pub fn flush_on_drop(&self) -> FlushOnDrop {
        FlushOnDrop(Arc::clone(&self.lines))
    }
}

// === impl FlushOnDrop ===

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        self.0.flush(FLUSH_TIMEOUT);
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
    let dropped = IntCounter::new(
        "headgate_log_lines_dropped_total",
        "Log lines that were dropped because standard error was not read in time.",
    )?;
    // Without the lock of `io::stderr`, which a blocked write would keep from panicking threads.
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let queue = LineQueue::start(stderr, dropped)?;
    let colours = io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer();
    let lines = lines.with_writer(Arc::clone(&queue)).with_ansi(colours);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()?;
    Ok(LogControl { level, lines: queue })
}

fn level(config: &LogConfig) -> LevelFilter {
    config.level.to_string().parse().unwrap_or(LevelFilter::INFO)
}
