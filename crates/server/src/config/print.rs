//! The configuration as an operator reads it: every key with the value in effect, secrets masked.

use std::fmt;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

use super::{
    AppConfig, AuthConfig, AuthMode, Bounded, Config, LogConfig, LogFormat, LogLevel, MemoryConfig,
    ObservabilityConfig, RateLimitConfig, RedisConfig, Secret, ServerConfig,
};

/// A configuration that can be shown: as YAML by [`Display`](fmt::Display), as JSON by serde.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(Value);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// Nothing: the key has no default.
    None,
    /// A number or a truth value, as JSON and YAML both write it.
    Bare(Bare),
    Text(String),
    List(Vec<Value>),
    Section(Vec<(&'static str, Value)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bare {
    Truth(bool),
    Number(u64),
}

/// Something that can be shown.
trait Show {
    fn show(&self) -> Value;
}

impl Config {
    /// Every key with the value that is in effect; secrets are masked.
    pub fn shown(&self) -> Shown {
        Shown(self.show())
    }
}

/// Shows every key of each section. Each is taken apart completely, so that a new key which is
/// not shown does not compile.
macro_rules! sections {
    ($($section:ident { $($key:ident),* $(,)? })*) => {$(
        impl Show for $section {
            fn show(&self) -> Value {
                let Self { $($key),* } = self;
                Value::Section(vec![$((stringify!($key), $key.show())),*])
            }
        }
    )*};
}

sections! {
    Config { app, server, auth, redis, memory, ratelimit, observability }
    AppConfig { name, version, environment }
    AuthConfig { mode }
    RedisConfig { url, urls, ca, pool_size, timeout_ms }
    MemoryConfig { capacity }
    RateLimitConfig { fail_open, default_limit, default_window_seconds }
    ObservabilityConfig { log }
    LogConfig { level, format }
}

// === impl Show ===

impl<T: Show> Show for Option<T> {
    fn show(&self) -> Value {
        self.as_ref().map_or(Value::None, Show::show)
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self) -> Value {
        Value::List(self.iter().map(Show::show).collect())
    }
}

impl Show for String {
    fn show(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl Show for bool {
    fn show(&self) -> Value {
        Value::Bare(Bare::Truth(*self))
    }
}

impl<const MIN: u64, const MAX: u64> Show for Bounded<MIN, MAX> {
    fn show(&self) -> Value {
        Value::Bare(Bare::Number(self.get()))
    }
}

impl Show for Secret {
    fn show(&self) -> Value {
        // As in logs.
        Value::Text(format!("{self:?}"))
    }
}

impl Show for ServerConfig {
    fn show(&self) -> Value {
        let Self { host: _, port, request_timeout_seconds, shutdown_timeout_seconds } = self;
        Value::Section(vec![
            ("host", self.address().ip().to_string().show()),
            ("port", port.show()),
            ("request_timeout_seconds", request_timeout_seconds.show()),
            ("shutdown_timeout_seconds", shutdown_timeout_seconds.show()),
        ])
    }
}

impl Show for AuthMode {
    fn show(&self) -> Value {
        Value::Text(match self {
            Self::Off => "off".to_owned(),
        })
    }
}

impl Show for LogLevel {
    fn show(&self) -> Value {
        Value::Text(self.to_string())
    }
}

impl Show for LogFormat {
    fn show(&self) -> Value {
        Value::Text(match self {
            Self::Text => "text".to_owned(),
            Self::Json => "json".to_owned(),
        })
    }
}

// === impl Shown ===

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, 0)
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

// === impl Value ===

impl Value {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        const INDENT: usize = 2;
        let width = depth * INDENT;
        match self {
            Self::Section(entries) => entries.iter().try_for_each(|(key, value)| {
                let below = matches!(value, Self::Section(_) | Self::List(_));
                write!(f, "{:width$}{key}:{}", "", if below { "\n" } else { " " })?;
                value.write(f, depth + 1)
            }),
            Self::List(items) => items.iter().try_for_each(|item| {
                write!(f, "{:width$}- ", "")?;
                item.write(f, depth + 1)
            }),
            Self::None => writeln!(f, "null"),
            Self::Bare(Bare::Truth(value)) => writeln!(f, "{value}"),
            Self::Bare(Bare::Number(value)) => writeln!(f, "{value}"),
            // A text in quotes is the same in YAML as in JSON, and is never taken for something else.
            Self::Text(text) => writeln!(f, "{}", serde_json::Value::from(text.as_str())),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_none(),
            Self::Bare(Bare::Truth(value)) => serializer.serialize_bool(*value),
            Self::Bare(Bare::Number(value)) => serializer.serialize_u64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Section(entries) => {
                let mut section = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| section.serialize_entry(key, value))?;
                section.end()
            }
        }
    }
}
