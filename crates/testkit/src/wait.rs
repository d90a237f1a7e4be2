use std::{
    thread,
    time::{Duration, Instant},
};

const POLL: Duration = Duration::from_millis(5);

/// Returns true as soon as `done` does, or false once `timeout` has passed.
#[expect(
    clippy::disallowed_methods,
    reason = "a server in another process keeps real time, so waiting for it does too"
)]
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
    fn asks_again_until_the_answer_is_yes() {
        let mut asked = 0;
        assert!(wait_until(Duration::from_secs(10), || {
            asked += 1;
            asked == 3
        }));
        assert_eq!(asked, 3);
    }

    #[test]
    fn asks_at_least_once_and_gives_up() {
        let mut asked = 0;
        assert!(!wait_until(Duration::ZERO, || {
            asked += 1;
            false
        }));
        assert_eq!(asked, 1);
    }
}
