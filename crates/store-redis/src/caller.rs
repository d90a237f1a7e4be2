//! One script call: from a verb and its checks to their outcomes.

use std::sync::Arc;

use headgate::{Check, Clock, Outcomes, StoreError, SystemClock, Timestamp, Verb};

use crate::{
    RedisConfig,
    call::{self, Call},
    servers::Servers,
};

/// Has Redis decide checks that share a server.
#[derive(Clone)]
pub(crate) struct Caller {
    servers: Arc<Servers>,
    /// Only chooses the calendar periods that Redis is told of.
    clock: Arc<dyn Clock>,
}

impl Caller {
    pub(crate) fn connect(config: &RedisConfig) -> Self {
        Self { servers: Arc::new(Servers::open(config)), clock: Arc::new(SystemClock::new()) }
    }

    pub(crate) fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Does `verb` to `checks`, unless their server is being left alone.
    pub(crate) async fn apply(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
    ) -> Result<Outcomes, StoreError> {
        if !self.servers.admits(checks) {
            return Err(StoreError::BreakerOpen);
        }
        self.apply_admitted(verb, checks).await
    }

    /// The same, where the server has been found to be one that may be asked.
    pub(crate) async fn apply_admitted(
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
        // What gives back or keeps a promise is not turned away where questions are.
        let must = !verb.is_admission();
        let mut answer = self.servers.run(&call(self.clock.now()), checks, must).await?;
        if let Some(now) = call::other_periods_wanted(&answer) {
            answer = self.servers.run(&call(now), checks, must).await?;
        }
        call::outcomes(verb, checks, &answer)
            .map_err(|error| StoreError::Corrupt(error.to_string()))
    }
}
