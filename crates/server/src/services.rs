//! What every surface is made of: REST and gRPC are two voices of these.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::Clock;
use headgate_auth::{Actor, Auth};
use headgate_persistence::Database;
use headgate_ratelimit::{
    AuditLog, Author, Catalog, KeyedAlgorithm,
    usecase::{
        CheckError, CheckRateLimit, Explain, GetUsage, KeyedError, KeyedQuestion, KeyedVerdict,
        LimitKeys, ManageRules, Question, ResetLimit, Verdict,
    },
};
use headgate_resilience::OutageLog;
use headgate_service_config::ServiceConfigRepository;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::{
    clients::Clients,
    config::AppConfig,
    console::{Console, Limited},
    events::Events,
    grpc::EnvoySurface,
    masked::Masked,
    metrics::{Metrics, MetricsText},
    quotas::QuotaServices,
    stores::{Probe, StoreKind},
    telemetry::{Span, Tracer},
};

/// What handlers need.
pub(crate) struct Services {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) check: CheckRateLimit,
    pub(crate) keyed: LimitKeys,
    /// How keys are counted where callers do not say.
    pub(crate) default_algorithm: KeyedAlgorithm,
    /// How clients are told apart.
    pub(crate) clients: Clients,
    pub(crate) outages: Outages,
    /// What Envoy is answered, if it is.
    pub(crate) envoy: Option<EnvoySurface>,
    pub(crate) usage: GetUsage,
    pub(crate) explain: Explain,
    pub(crate) reset: ResetLimit,
    pub(crate) rules: ManageRules,
    /// Long lists of rules take turns, since each needs much memory.
    pub(crate) rule_lists: Semaphore,
    pub(crate) quotas: QuotaServices,
    pub(crate) audit: Arc<dyn AuditLog>,
    /// Where rules, quotas and the audit log are kept.
    pub(crate) database: Arc<Database>,
    pub(crate) events: Events,
    /// The documents of services that embed the guard.
    pub(crate) documents: Arc<dyn ServiceConfigRepository>,
    pub(crate) auth: Auth,
    pub(crate) probe: Probe,
    pub(crate) store: StoreKind,
    /// Who this is.
    pub(crate) about: AppConfig,
    pub(crate) metrics: Metrics,
    /// Whether requests are followed, and how.
    pub(crate) tracer: Option<Tracer>,
    pub(crate) clock: Arc<dyn Clock>,
    /// What a browser needs beside the API.
    pub(crate) console: Console,
    pub(crate) stopping: AtomicBool,
    pub(crate) metrics_text: MetricsText,
}

/// Degraded answers that no log line has told of: each kind has lines of its own.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    rules: OutageLog,
    keys: OutageLog,
}

impl Services {
    /// Decides, and counts what was decided; a dry run only says what would be.
    pub(crate) async fn decide(
        &self,
        question: &Question<'_>,
        dry_run: bool,
    ) -> Result<Verdict, CheckError> {
        let verdict = if dry_run {
            self.check.peek(question).await?
        } else {
            let started = self.clock.steady();
            let verdict = self.check.check(question).await?;
            self.metrics.checks.decided(&verdict.decision, self.since(started));
            self.note(question, &verdict);
            verdict
        };
        self.warn_degraded(question, &verdict);
        if self.tracer.is_some() {
            Span::decided(&[&verdict.decision]);
        }
        Ok(verdict)
    }

    /// Remembers who was limited; whoever was admitted costs a look at a flag.
    pub(crate) fn note(&self, question: &Question<'_>, verdict: &Verdict) {
        let Verdict { decision, rule, .. } = verdict;
        if !decision.allowed {
            let limited = Limited::by_rule(question.scope, question.subject.subject(), rule);
            self.console.hitters.note(limited, decision.at);
        }
    }

    /// Warns of an answer that the store did not give, at most every few seconds.
    pub(crate) fn warn_degraded(&self, question: &Question<'_>, verdict: &Verdict) {
        let Some(mode) = verdict.decision.degraded else {
            return;
        };
        if let Some(answers) = self.outages.rules.count(self.clock.now()) {
            let (scope, identifier) = (question.scope, Masked(question.subject.subject()));
            let rule = verdict.rule.id();
            let rule = rule.map_or_else(|| "default".to_owned(), |id| id.to_string());
            warn!(
                %scope, %identifier, rule, %mode, reason = mode.cause.name(), answers,
                "The store cannot decide checks: fail mode {mode} answers"
            );
        }
    }

    /// Decides about a key, and counts what was decided.
    pub(crate) async fn decide_key(
        &self,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'_>, KeyedError> {
        let started = self.clock.steady();
        let verdict = self.keyed.check(question).await?;
        let (algorithm, decision) = (question.algorithm, &verdict.decision);
        self.metrics.keyed.decided(algorithm, decision, self.since(started));
        if self.tracer.is_some() {
            Span::decided(&[decision]);
        }
        if !decision.allowed {
            let limited = Limited::by_key(question.key.subject(), algorithm);
            self.console.hitters.note(limited, decision.at);
        }
        let (key, remaining) = (Masked(question.key.subject()), decision.remaining);
        match decision.degraded {
            Some(_) => self.warn_degraded_key(question, &verdict),
            None if decision.allowed => debug!(%algorithm, %key, remaining, "Request allowed"),
            None => debug!(%algorithm, %key, remaining, "Rate limit exceeded"),
        }
        Ok(verdict)
    }

    /// Says how a key stands, and takes nothing.
    pub(crate) async fn peek_key(
        &self,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'_>, KeyedError> {
        let verdict = self.keyed.peek(question).await?;
        self.warn_degraded_key(question, &verdict);
        Ok(verdict)
    }

    fn warn_degraded_key(&self, question: &KeyedQuestion<'_>, verdict: &KeyedVerdict<'_>) {
        let Some(mode) = verdict.decision.degraded else {
            return;
        };
        if let Some(answers) = self.outages.keys.count(self.clock.now()) {
            let (algorithm, key) = (question.algorithm, Masked(question.key.subject()));
            warn!(
                %algorithm, %key, %mode, reason = mode.cause.name(), answers,
                "The store cannot decide about keys: fail mode {mode} answers"
            );
        }
    }

    /// From now on the server says that it is not ready: it stops.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    /// Whether the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// How long ago `started` was, to the microsecond. Reading this clock costs half of what reading
    /// the operating system's does.
    pub(crate) fn since(&self, started: u64) -> Duration {
        Duration::from_micros(self.clock.steady().saturating_sub(started))
    }

    /// Who changes something, in the words of the audit log.
    pub(crate) fn author(&self, actor: Actor, request_id: &str) -> Author {
        Author {
            actor: actor.name.into_owned(),
            request_id: request_id.to_owned(),
            at: self.clock.now(),
        }
    }
}
