use std::fmt::Write as _;

use headgate::{Batch, Check, Cost, FailMode, Key, KeySpace, Limit};
use sha2::{Digest as _, Sha256};

/// What a request is expected to cost, under one limit or several. All of it is reserved, or
/// nothing.
///
/// ```
/// use std::time::Duration;
///
/// use headgate::Limit;
/// use headgate_guard::Estimate;
///
/// let requests = Limit::sliding_window(60, Duration::from_secs(60))?;
/// let tokens = Limit::token_bucket(10_000, Duration::from_secs(60))?;
/// // A request of the tenant 7 that may produce up to 500 tokens.
/// let estimate = Estimate::new("requests:7", &requests, 1).and("tokens:7", &tokens, 500);
/// # Ok::<(), headgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Estimate(Vec<Part>);

#[derive(Clone, Debug)]
struct Part {
    key: String,
    limit: Limit,
    units: u64,
}

impl Estimate {
    /// Expects `units` under a limit of `key`. More than the limit admits at once is as much as
    /// that; 0 is 1.
    pub fn new(key: impl Into<String>, limit: &Limit, units: u64) -> Self {
        Self(Vec::with_capacity(2)).and(key, limit, units)
    }

    /// Expects `units` under another limit, too. Units of the same key are added.
    #[must_use]
    pub fn and(mut self, key: impl Into<String>, limit: &Limit, units: u64) -> Self {
        let key = short(key.into());
        let most = limit.capacity();
        if let Some(part) = self.0.iter_mut().find(|part| part.key == key) {
            part.units = part.units.saturating_add(units).min(most);
        } else {
            self.0.push(Part { key, limit: limit.clone(), units: units.clamp(1, most) });
        }
        self
    }

    /// The checks within `space`.
    pub(super) fn batch<'a>(
        &'a self,
        space: &'a KeySpace<'a>,
        fail_mode: FailMode,
    ) -> Option<Batch<'a>> {
        let checks = self.0.iter().map(|part| {
            let key = Key::new(&part.key).ok()?.within(space);
            let check = Check::new(key, &part.limit, Cost::new(part.units).ok()?).ok()?;
            Some(check.with_fail_mode(fail_mode))
        });
        Batch::new(checks.collect::<Option<Vec<_>>>()?).ok()
    }

    /// The window of the limit at `index`, in seconds.
    pub(super) fn window_secs(&self, index: usize) -> u64 {
        let window = self.0.get(index).and_then(|part| part.limit.window());
        window.map_or(0, |window| window.as_secs())
    }
}

/// A key as it is, or its hash if a store does not accept it.
fn short(key: String) -> String {
    if Key::new(&key).is_ok() {
        return key;
    }
    let hash = Sha256::digest(key.as_bytes());
    hash.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
