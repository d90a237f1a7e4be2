//! How many connections a pool has.

use crate::config::DatabaseConfig;

/// Number of connections of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolSize {
    pub(crate) max: u32,
    /// Number of idle connections that are kept open.
    pub(crate) min: u32,
}

// === impl PoolSize ===

impl PoolSize {
    /// Divides the connections between the server's own pool and that of reads by requests, which
    /// gets half of them. `None` for requests if there is only one connection to share.
    pub(crate) fn divided(config: &DatabaseConfig) -> (Self, Option<Self>) {
        let for_requests = config.max_connections / 2;
        let own = Self::new(config.max_connections - for_requests, config.min_connections);
        let rest = Self::new(for_requests, config.min_connections - own.min);
        (own, Some(rest).filter(|rest| rest.max > 0))
    }

    fn new(max: u32, min: u32) -> Self {
        Self { max, min: min.min(max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_divided_and_none_is_added() {
        let divided = |max, min| {
            let config = DatabaseConfig::from_url("sqlite::memory:").unwrap();
            let config = config.max_connections(max).min_connections(min);
            let (own, rest) = PoolSize::divided(&config);
            (own.max, own.min, rest.map(|rest| (rest.max, rest.min)))
        };
        assert_eq!(divided(1, 2), (1, 1, None));
        assert_eq!(divided(2, 0), (1, 0, Some((1, 0))));
        assert_eq!(divided(5, 2), (3, 2, Some((2, 0))));
        assert_eq!(divided(10, 2), (5, 2, Some((5, 0))));
        assert_eq!(divided(10, 8), (5, 5, Some((5, 3))));
        assert_eq!(divided(10, 99), (5, 5, Some((5, 5))));
    }
}
