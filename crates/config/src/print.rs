//! The configuration in effect: every key with its value, secrets masked.

mod value;

use std::path::PathBuf;

pub use self::value::{Change, Printed};
use crate::{Bounded, ConfigDuration, Secret};

/// A value or section that can be printed.
pub trait Print {
    /// Returns the value in effect, with secrets masked.
    fn print(&self) -> Printed;
}

/// Implements [`Print`] for sections, key by key, in the order given.
///
/// Each section is destructured completely: a key that is left out does not compile.
#[macro_export]
macro_rules! print_sections {
    ($($section:ident { $($key:ident),* $(,)? })*) => {$(
        impl $crate::Print for $section {
            fn print(&self) -> $crate::Printed {
                let Self { $($key),* } = self;
                $crate::Printed::section([
                    $((stringify!($key), $crate::Print::print($key))),*
                ])
            }
        }
    )*};
}

impl<T: Print> Print for Option<T> {
    fn print(&self) -> Printed {
        self.as_ref().map_or_else(|| Printed::scalar(serde_json::Value::Null), Print::print)
    }
}

impl<T: Print> Print for Vec<T> {
    fn print(&self) -> Printed {
        Printed::list(self.iter().map(Print::print))
    }
}

impl Print for String {
    fn print(&self) -> Printed {
        Printed::scalar(self.as_str())
    }
}

impl Print for PathBuf {
    fn print(&self) -> Printed {
        Printed::scalar(self.to_string_lossy())
    }
}

impl Print for bool {
    fn print(&self) -> Printed {
        Printed::scalar(*self)
    }
}

impl<const MIN: u64, const MAX: u64> Print for Bounded<MIN, MAX> {
    fn print(&self) -> Printed {
        Printed::scalar(self.get())
    }
}

impl Print for ConfigDuration {
    fn print(&self) -> Printed {
        match self.get().as_millis() {
            millis if millis.is_multiple_of(1000) => Printed::scalar(format!("{}s", millis / 1000)),
            millis => Printed::scalar(format!("{millis}ms")),
        }
    }
}

impl Print for Secret {
    fn print(&self) -> Printed {
        // Masked as in logs.
        Printed::masked(format!("{self:?}"), self.expose())
    }
}
