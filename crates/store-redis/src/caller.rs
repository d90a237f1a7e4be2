//! One script call: from a verb and its checks to their outcomes.

use std::sync::Arc;

use headgate::{Check, Clock, Outcomes, StoreError, SystemClock, Timestamp, Verb};

use crate::{
    RedisConfig,
    call::{self, Call},
    link::Link,
};

/// Has Redis decide checks that share a node.
#[derive(Clone)]
pub(crate) struct Caller {
    link: Arc<Link>,
    /// Only chooses the calendar periods that Redis is told of.
    clock: Arc<dyn Clock>,
}

impl Caller {
    pub(crate) fn connect(config: &RedisConfig) -> Self {
        Self { link: Arc::new(Link::open(config)), clock: Arc::new(SystemClock::new()) }
    }

    pub(crate) fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) async fn apply(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
    ) -> Result<Outcomes, StoreError> {
        self.ask(verb, checks, |now| Call::new(verb, checks, now)).await
    }

    /// Gives back what `checks` acquired, each at its time.
    pub(crate) async fn undo(
        &self,
        checks: &[Check<'_>],
        taken: &[Timestamp],
    ) -> Result<Outcomes, StoreError> {
        self.ask(Verb::Refund, checks, |now| Call::undo(checks, taken, now)).await
    }

    async fn ask<'a>(
        &self,
        verb: Verb,
        checks: &'a [Check<'a>],
        call: impl Fn(Timestamp) -> Call<'a>,
    ) -> Result<Outcomes, StoreError> {
        let mut answer = self.link.run(&call(self.clock.now())).await?;
        if let Some(now) = call::other_periods_wanted(&answer) {
            answer = self.link.run(&call(now)).await?;
        }
        call::outcomes(verb, checks, &answer)
            .map_err(|error| StoreError::Corrupt(error.to_string()))
    }
}
