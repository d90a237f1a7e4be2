//! Bounds the answers to denied frames.
//!
//! A client over a limit gets an answer, and stays connected. To prevent abuse, only a bounded
//! number of frames of each kind is answered; more of them are dropped unread.

use std::time::Duration;

use headgate::Timestamp;
use headgate_guard::MessageKind;

/// Denied frames of one kind that are answered in a minute.
pub(super) const MAX_ANSWERS: u32 = 120;

/// Window in which they are counted.
const MINUTE: u64 = 60_000_000;

/// Maximum time for which frames are dropped without asking the guard, in microseconds: a document
/// with higher limits must take effect.
const MAX_DROPPING: u64 = 1_000_000;

/// Denied frames of one connection, by kind.
#[derive(Debug, Default)]
pub(super) struct Refusals([Refused; MessageKind::ALL.len()]);

#[derive(Debug, Default)]
struct Refused {
    since: Timestamp,
    answered: u32,
    dropped_until: Timestamp,
}

/// Answer to a denied frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Reason,
    /// The last answer this minute.
    LastNotice,
    Dropped,
}

// === impl Refusals ===

impl Refusals {
    /// Returns true if a frame of `kind` is dropped without asking the guard: too many were denied,
    /// and it is too early. A time too far in the future means that the clock was set back.
    pub(super) fn drops(&self, kind: MessageKind, now: Timestamp) -> bool {
        (1..=MAX_DROPPING).contains(&self.0[kind as usize].dropped_until.since(now))
    }

    /// Returns the answer to a frame of `kind` that would be admitted after `wait`.
    pub(super) fn answer(&mut self, kind: MessageKind, wait: Duration, now: Timestamp) -> Answer {
        let refused = &mut self.0[kind as usize];
        if now < refused.since || now.since(refused.since) >= MINUTE {
            *refused = Refused { since: now, ..Refused::default() };
        }
        refused.answered = refused.answered.saturating_add(1);
        if refused.answered <= MAX_ANSWERS {
            return Answer::Reason;
        }
        let wait = u64::try_from(wait.as_micros()).unwrap_or(MAX_DROPPING);
        refused.dropped_until = now.plus(wait.min(MAX_DROPPING));
        if refused.answered == MAX_ANSWERS + 1 { Answer::LastNotice } else { Answer::Dropped }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(30);

    #[test]
    fn so_many_are_answered_in_a_minute_and_each_kind_by_itself() {
        let mut refusals = Refusals::default();
        let now = Timestamp::from_micros(1_000 * MINUTE);
        let mut event = |now| refusals.answer(MessageKind::Event, WAIT, now);
        for _ in 0..MAX_ANSWERS {
            assert_eq!(event(now), Answer::Reason);
        }
        assert_eq!(event(now), Answer::LastNotice);
        assert_eq!(event(now.plus(MINUTE - 1)), Answer::Dropped);
        assert_eq!(event(now.plus(MINUTE)), Answer::Reason);
        assert_eq!(refusals.answer(MessageKind::Req, WAIT, now), Answer::Reason);
    }

    #[test]
    fn frames_are_dropped_without_asking_the_guard_for_a_short_time_only() {
        let mut refusals = Refusals::default();
        let now = Timestamp::from_micros(1_000 * MINUTE);
        let kind = MessageKind::Event;
        for _ in 0..MAX_ANSWERS {
            refusals.answer(kind, WAIT, now);
        }
        assert!(!refusals.drops(kind, now), "all were answered");
        refusals.answer(kind, WAIT, now);
        assert!(refusals.drops(kind, now.plus(MAX_DROPPING - 1)));
        assert!(!refusals.drops(kind, now.plus(MAX_DROPPING)));
        assert!(!refusals.drops(MessageKind::Req, now));
        refusals.answer(kind, Duration::from_micros(5), now);
        assert!(!refusals.drops(kind, now.plus(5)), "the wait is over");
    }

    #[test]
    fn a_clock_that_is_set_back_starts_a_new_minute() {
        let mut refusals = Refusals::default();
        let now = Timestamp::from_micros(1_000 * MINUTE);
        let kind = MessageKind::Event;
        for _ in 0..=MAX_ANSWERS {
            refusals.answer(kind, WAIT, now);
        }
        assert!(refusals.drops(kind, now));
        let earlier = Timestamp::from_micros(900 * MINUTE);
        assert!(!refusals.drops(kind, earlier));
        assert_eq!(refusals.answer(kind, WAIT, earlier), Answer::Reason);
        assert!(!refusals.drops(kind, now));
    }
}
