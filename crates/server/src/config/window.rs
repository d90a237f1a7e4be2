use headgate::Limit;
use headgate_config::{Print, Printed, quoted};
use headgate_ratelimit::Window;
use serde::Deserialize;

/// A window of whole seconds, written `60`, `60s`, `1m` or `1h`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct WindowSize(u64);

impl WindowSize {
    const MAX: u64 = Limit::MAX_WINDOW.as_secs();

    /// A window of this many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// Returns the length in seconds.
    pub const fn seconds(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for WindowSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let seconds =
            text.parse().ok().map(Window::seconds).filter(|seconds| *seconds <= Self::MAX);
        seconds.map(Self).ok_or_else(|| {
            format!(
                "expected a window of up to {} seconds such as 60, 60s, 1m or 1h, got {}",
                Self::MAX,
                quoted(&text)
            )
        })
    }
}

// === impl Print ===

impl Print for WindowSize {
    fn print(&self) -> Printed {
        Printed::scalar(self.seconds())
    }
}
