use std::sync::Arc;

use headgate::Timestamp;
use tokio::sync::oneshot;

use super::pending::{Pending, halves};
use crate::{
    ActivePolicy, Increment, Operation, QuotaId, QuotaPeriod, QuotaPolicy, QuotaSpec, Subject,
    SubjectType,
};

const NOW: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

fn policies(count: usize) -> Vec<Arc<ActivePolicy>> {
    let policy = |_| {
        let spec = QuotaSpec {
            name: "standard".to_owned(),
            subject: Subject { kind: SubjectType::Tenant, id: "acme".to_owned() },
            limit: 10,
            period: QuotaPeriod::Daily,
            time_zone: None,
            enabled: true,
            alert_threshold_percent: None,
        };
        let policy = QuotaPolicy { id: QuotaId::new(NOW), spec, created_at: NOW, updated_at: NOW };
        Arc::new(ActivePolicy::new(policy).unwrap())
    };
    (0..count).map(policy).collect()
}

/// An increment whose amount is its place in the batch.
fn pending(policy: &Arc<ActivePolicy>, amount: u64) -> Pending {
    let increment = Increment {
        policy: policy.policy().id.clone(),
        span: policy.span(NOW),
        amount,
        request_id: None,
        at: NOW,
    };
    let (answer, _) = oneshot::channel();
    Pending { policy: Arc::clone(policy), operation: increment.into(), answer }
}

fn amounts(batch: &[Pending], id: &QuotaId) -> Vec<u64> {
    let own = batch.iter().filter(|pending| pending.id() == id);
    own.map(|pending| match &pending.operation {
        Operation::Increment(increment) => increment.amount,
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn a_batch_is_split_between_policies_and_their_operations_stay_in_order() {
    for count in 1..=7 {
        for length in 1..=20 {
            let policies = policies(count);
            let batch = (0..length).map(|at| pending(&policies[at * at % count], at as u64));
            let batch: Vec<Pending> = batch.collect();
            let used = policies.iter().map(|policy| &policy.policy().id);
            let used: Vec<_> = used.filter(|id| !amounts(&batch, id).is_empty()).collect();
            let expected: Vec<_> = used.iter().map(|id| amounts(&batch, id)).collect();
            match halves(batch) {
                Err(batch) => assert!(used.len() == 1 && amounts(&batch, used[0]) == expected[0]),
                Ok([one, other]) => {
                    assert!(!one.is_empty() && !other.is_empty());
                    for (id, expected) in used.into_iter().zip(expected) {
                        let parts = [amounts(&one, id), amounts(&other, id)];
                        assert!(parts.contains(&expected) && parts.contains(&Vec::new()));
                    }
                }
            }
        }
    }
}

#[test]
fn requests_of_callers_that_have_gone_away_are_not_wanted() {
    let [policy] = policies(1).try_into().unwrap();
    assert!(!pending(&policy, 1).is_wanted());
}
