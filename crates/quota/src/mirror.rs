//! Keeps the counters in step with the ledger, and answers those whose increments are committed.

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use crate::{
    ActivePolicy, Entry, QuotaId, Quotas, RepositoryError, Span, Verdict,
    counter::{Raised, Standing},
};

/// Raises counters to what was committed, then answers: what is acknowledged is shown.
pub(crate) struct Mirror {
    quotas: Quotas,
    committed: mpsc::Receiver<Committed>,
}

/// One increment that the ledger has decided, and who waits for that.
pub(crate) struct Committed {
    pub(crate) policy: Arc<ActivePolicy>,
    pub(crate) span: Arc<Span>,
    pub(crate) amount: u64,
    pub(crate) entry: Entry,
    pub(crate) answer: oneshot::Sender<Result<Entry, RepositoryError>>,
}

/// The counter of one period, and what it is to show.
struct Behind {
    policy: Arc<ActivePolicy>,
    span: Arc<Span>,
    standing: Standing,
}

/// Counters that are raised at the same time.
const AT_A_TIME: usize = 64;

// === impl Mirror ===

impl Mirror {
    /// Increments that may be committed before the counters show them.
    pub(crate) const CAPACITY: usize = 2_048;

    pub(crate) const fn new(quotas: Quotas, committed: mpsc::Receiver<Committed>) -> Self {
        Self { quotas, committed }
    }

    /// Goes on until nothing more can be committed.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        while self.committed.recv_many(&mut batch, Self::CAPACITY).await > 0 {
            let behind = stream::iter(Behind::of(&batch));
            behind.for_each_concurrent(AT_A_TIME, |behind| behind.catch_up(&self.quotas)).await;
            for Committed { answer, entry, .. } in batch.drain(..) {
                let _ = answer.send(Ok(entry));
            }
        }
    }
}

// === impl Behind ===

impl Behind {
    /// The counters that a batch is about: the last word on each counts.
    fn of(batch: &[Committed]) -> Vec<Self> {
        let mut all: HashMap<(&QuotaId, &str), Self> = HashMap::new();
        for one in batch {
            let added = match one.entry.verdict {
                Verdict::Taken => one.amount,
                Verdict::Refused => 0,
                _ => continue,
            };
            let key = (&one.policy.policy().id, &*one.span.name);
            let behind = all.entry(key).or_insert_with(|| Self {
                policy: Arc::clone(&one.policy),
                span: Arc::clone(&one.span),
                standing: Standing { used: 0, added: 0 },
            });
            behind.standing.used = one.entry.used;
            behind.standing.added += added;
        }
        all.into_values().collect()
    }

    /// Raises the counter. A store that is away leaves one that shows too little, which the next
    /// commit, check or comparison raises.
    async fn catch_up(self, quotas: &Quotas) {
        let Self { policy, span, standing } = self;
        let raised = quotas.counter.raise(&policy, &span, standing).await;
        // Another process may have come first; or usage was reset, and a late raise undid that.
        if standing.added > 0 && matches!(raised, Ok(Raised::NotNeeded)) {
            quotas.distrust(&policy, &span).await;
        }
    }
}
