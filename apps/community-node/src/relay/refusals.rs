//! How often one client is told that it has to wait.
//!
//! Whoever is over a limit is told so, and stays. So that telling it cannot be abused, only so many
//! frames of a kind are refused with an answer; more of them are dropped unread.

use std::time::Duration;

use headgate::Timestamp;
use headgate_guard::MessageKind;

/// How many frames of one kind are refused with an answer in a minute.
pub(super) const MAX_ANSWERS: u32 = 120;

/// How long these are counted.
const MINUTE: u64 = 60_000_000;

/// The longest time for which nobody asks whether a frame could be admitted again, in microseconds: a
/// document that admits more is to be noticed.
const MAX_DEAF: u64 = 1_000_000;

/// What was refused on one connection, by kind.
#[derive(Debug, Default)]
pub(super) struct Refusals([Refused; MessageKind::ALL.len()]);

#[derive(Debug, Default)]
struct Refused {
    since: Timestamp,
    answered: u32,
    deaf_until: Timestamp,
}

/// How a refusal is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Reason,
    /// For the last time: no more answers this minute.
    LastWord,
    Silence,
}

// === impl Refusals ===

impl Refusals {
    /// Whether a frame of `kind` is dropped without asking: it came too often already, and its time
    /// has not come. A time that is further away than any is of a clock that was set back since.
    pub(super) fn is_deaf_to(&self, kind: MessageKind, now: Timestamp) -> bool {
        (1..=MAX_DEAF).contains(&self.0[kind as usize].deaf_until.since(now))
    }

    /// How to answer a frame of `kind` that could be admitted after `wait`.
    pub(super) fn answer(&mut self, kind: MessageKind, wait: Duration, now: Timestamp) -> Answer {
        let refused = &mut self.0[kind as usize];
        if now < refused.since || now.since(refused.since) >= MINUTE {
            *refused = Refused { since: now, ..Refused::default() };
        }
        refused.answered = refused.answered.saturating_add(1);
        if refused.answered <= MAX_ANSWERS {
            return Answer::Reason;
        }
        let wait = u64::try_from(wait.as_micros()).unwrap_or(MAX_DEAF);
        refused.deaf_until = now.plus(wait.min(MAX_DEAF));
        if refused.answered == MAX_ANSWERS + 1 { Answer::LastWord } else { Answer::Silence }
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
        assert_eq!(event(now), Answer::LastWord);
        assert_eq!(event(now.plus(MINUTE - 1)), Answer::Silence);
        assert_eq!(event(now.plus(MINUTE)), Answer::Reason);
        assert_eq!(refusals.answer(MessageKind::Req, WAIT, now), Answer::Reason);
    }

    #[test]
    fn nobody_is_asked_about_what_cannot_be_admitted_but_not_for_long() {
        let mut refusals = Refusals::default();
        let now = Timestamp::from_micros(1_000 * MINUTE);
        let kind = MessageKind::Event;
        for _ in 0..MAX_ANSWERS {
            refusals.answer(kind, WAIT, now);
        }
        assert!(!refusals.is_deaf_to(kind, now), "all were answered");
        refusals.answer(kind, WAIT, now);
        assert!(refusals.is_deaf_to(kind, now.plus(MAX_DEAF - 1)));
        assert!(!refusals.is_deaf_to(kind, now.plus(MAX_DEAF)));
        assert!(!refusals.is_deaf_to(MessageKind::Req, now));
        refusals.answer(kind, Duration::from_micros(5), now);
        assert!(!refusals.is_deaf_to(kind, now.plus(5)), "its time has come");
    }

    #[test]
    fn a_clock_that_is_set_back_starts_a_new_minute() {
        let mut refusals = Refusals::default();
        let now = Timestamp::from_micros(1_000 * MINUTE);
        let kind = MessageKind::Event;
        for _ in 0..=MAX_ANSWERS {
            refusals.answer(kind, WAIT, now);
        }
        assert!(refusals.is_deaf_to(kind, now));
        let earlier = Timestamp::from_micros(900 * MINUTE);
        assert!(!refusals.is_deaf_to(kind, earlier));
        assert_eq!(refusals.answer(kind, WAIT, earlier), Answer::Reason);
        assert!(!refusals.is_deaf_to(kind, now));
    }
}
