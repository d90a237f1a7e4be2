use std::{
    thread,
    time::{Duration, Instant},
};

const POLL: Duration = Duration::from_millis(5);

/// Polls `done` until it returns true. Returns false after `timeout`.
#[expect(clippy::disallowed_methods, reason = "servers in other processes run in real time")]
pub fn wait_until(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + timeout;
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        thread::park_timeout(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_until_done() {
        let mut asked = 0;
        assert!(wait_until(Duration::from_secs(10), || {
            asked += 1;
            asked == 3
        }));
        assert_eq!(asked, 3);
    }

    #[test]
    fn polls_at_least_once_before_the_timeout() {
        let mut asked = 0;
        assert!(!wait_until(Duration::ZERO, || {
            asked += 1;
            false
        }));
        assert_eq!(asked, 1);
    }
}
