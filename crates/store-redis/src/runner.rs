//! Running a script: from a verb and its checks to their outcomes.

use std::sync::Arc;

use headgate::{Check, Clock, Outcomes, StoreError, SystemClock, Timestamp, Verb};
use redis::Value;

use crate::{
    RedisConfig,
    call::{self, Acquired, Call},
    servers::Servers,
};

/// Decides checks that share a server by a script call.
#[derive(Clone)]
pub(crate) struct ScriptRunner {
    servers: Arc<Servers>,
    /// Selects the calendar periods that are sent, and nothing else.
    clock: Arc<dyn Clock>,
}

impl ScriptRunner {
    pub(crate) fn connect(config: &RedisConfig) -> Self {
        Self { servers: Arc::new(Servers::open(config)), clock: Arc::new(SystemClock::new()) }
    }

    pub(crate) fn with_clock(self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Applies `verb` to `checks`, unless the circuit breaker of their server is open.
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

    /// Applies `verb` to `checks` of a server whose circuit breaker has admitted the call.
    pub(crate) async fn apply_admitted(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
    ) -> Result<Outcomes, StoreError> {
        self.run(verb, checks, |now| Call::new(verb, checks, now)).await
    }

    /// Acquires or reserves as [`apply_admitted`](Self::apply_admitted) does, and returns what
    /// undoing it needs to know.
    pub(crate) async fn take_admitted(
        &self,
        verb: Verb,
        checks: &[Check<'_>],
    ) -> Result<(Outcomes, Vec<Acquired>), StoreError> {
        let reply = self.call(verb, checks, |now| Call::new(verb, checks, now)).await?;
        let outcomes = call::outcomes(verb, checks, &reply).map_err(corrupt)?;
        let acquired = call::acquired(verb, checks, &outcomes, &reply).map_err(corrupt)?;
        Ok((outcomes, acquired))
    }

    /// Returns what `checks` acquired.
    pub(crate) async fn undo(
        &self,
        checks: &[Check<'_>],
        taken: &[Acquired],
    ) -> Result<Outcomes, StoreError> {
        self.run(Verb::Refund, checks, |now| Call::undo(checks, taken, now)).await
    }

    async fn run<'a>(
        &self,
        verb: Verb,
        checks: &'a [Check<'a>],
        call: impl Fn(Timestamp) -> Call<'a>,
    ) -> Result<Outcomes, StoreError> {
        let reply = self.call(verb, checks, call).await?;
        call::outcomes(verb, checks, &reply).map_err(corrupt)
    }

    async fn call<'a>(
        &self,
        verb: Verb,
        checks: &'a [Check<'a>],
        call: impl Fn(Timestamp) -> Call<'a>,
    ) -> Result<Value, StoreError> {
        // Calls that return units or end a reservation are not shed when checks are. Those that
        // only read one are.
        let acts = checks.iter().any(|check| !check.mode().is_read_only());
        let priority = !verb.is_admission() && acts;
        let mut reply = self.servers.run(&call(self.clock.now()), checks, priority).await?;
        if let Some(now) = call::needs_other_periods(&reply) {
            reply = self.servers.run(&call(now), checks, priority).await?;
        }
        Ok(reply)
    }
}

fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
