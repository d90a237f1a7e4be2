//! The state of one subject under one limit.

use crate::algorithm::{bucket, concurrency, fixed_window, sliding_window, sliding_window_counter};

/// The state of a subject, for any algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The state of a new subject, or of one whose units are all available.
    #[default]
    Fresh,
    /// Token bucket and leaky bucket.
    Bucket(bucket::State),
    /// Fixed and calendar windows.
    Window(fixed_window::State),
    /// The sliding window's two counters.
    Counter(sliding_window_counter::State),
    /// The sliding window's log.
    Log(sliding_window::State),
    /// The holders of a concurrency limit's places.
    Places(Box<concurrency::State>),
}

/// Access to the state of one algorithm within a [`State`].
///
/// The state of another algorithm reads as the default: stores keep the states of different
/// algorithms apart, so it can only be left over from an earlier limit.
pub(crate) trait OwnState: Default {
    fn of(state: &State) -> Option<&Self>;
    fn of_mut(state: &mut State) -> &mut Self;
}

macro_rules! own_state {
    ($variant:ident, $inner:ty) => {
        impl OwnState for $inner {
            fn of(state: &State) -> Option<&Self> {
                if let State::$variant(inner) = state { Some(inner) } else { None }
            }

            fn of_mut(state: &mut State) -> &mut Self {
                if !matches!(state, State::$variant(_)) {
                    *state = State::$variant(Self::default().into());
                }
                let State::$variant(inner) = state else { unreachable!("it was just set") };
                inner
            }
        }
    };
}

own_state!(Bucket, bucket::State);
own_state!(Window, fixed_window::State);
own_state!(Counter, sliding_window_counter::State);
own_state!(Log, sliding_window::State);
own_state!(Places, concurrency::State);
