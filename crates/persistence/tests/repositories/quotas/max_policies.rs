//! The maximum number of policies.

use headgate_quota::{
    Draft, QuotaPolicy, QuotaPolicyRepository, RepositoryError, SubjectType, Unused,
    usecase::ManageError,
};
use tokio::task::JoinSet;

use super::setup::{Replica, draft};
use crate::support::{Home, at, on_both};

on_both!(
    rejects_policies_beyond_the_maximum,
    concurrent_writers_cannot_exceed_the_maximum,
    existing_policies_beyond_the_maximum_are_kept,
);

fn of(subject: &str) -> Draft {
    Draft { subject_id: subject.to_owned().into(), ..draft(10) }
}

fn is_full(result: &Result<QuotaPolicy, ManageError>) -> bool {
    matches!(result, Err(ManageError::Repository(RepositoryError::TooManyPolicies { max: 3 })))
}

async fn try_create(replica: &Replica, subject: &str) -> Result<QuotaPolicy, ManageError> {
    replica.policies.create(of(subject), &replica.author()).await
}

async fn rejects_policies_beyond_the_maximum(home: &Home) {
    let replica = Replica::start(home).await.bounded(home, 3);
    let first = replica.create(of("t1")).await;
    replica.create(of("t2")).await;
    replica.create(of("t3")).await;
    let before = replica.kept.load().await.unwrap();
    let refused = try_create(&replica, "t4").await;
    assert!(is_full(&refused), "{refused:?}");
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("at most 3 quota policies") && error.contains("quota.max_policies"));
    let unrecorded = replica.policies.clone().unrecorded();
    let refused = unrecorded.create(of("t4"), &replica.author()).await;
    assert!(is_full(&refused), "{refused:?}");
    assert_eq!(replica.kept.load().await.unwrap(), before);

    // A deletion makes room for one.
    replica
        .policies
        .amend(&first.id, &Draft { limit: 11.into(), ..Draft::default() }, &replica.author())
        .await
        .unwrap();
    replica.policies.delete(&first.id, &replica.author()).await.unwrap();
    replica.create(of("t4")).await;
    let refused = try_create(&replica, "t5").await;
    assert!(is_full(&refused), "{refused:?}");

    // So does the deletion of unused policies, for all of them.
    let unused = Unused {
        name: &before.1[0].spec.name,
        subject_type: SubjectType::Tenant,
        period: before.1[0].spec.period,
        before: at(1),
    };
    assert_eq!(replica.kept.delete_unused(&unused).await.unwrap(), 3);
    for subject in ["t5", "t6", "t7"] {
        replica.create(of(subject)).await;
    }
    let refused = try_create(&replica, "t8").await;
    assert!(is_full(&refused), "{refused:?}");
}

async fn concurrent_writers_cannot_exceed_the_maximum(home: &Home) {
    let first = Replica::start(home).await;
    let replicas = [first.bounded(home, 3), first.bounded(home, 3)];
    replicas[0].create(of("t1")).await;
    replicas[1].create(of("t2")).await;
    let mut writes = JoinSet::new();
    for number in 0..4 {
        let policies = replicas[number % 2].policies.clone();
        let author = first.author();
        let draft = of(&format!("v{number}"));
        writes.spawn(async move { policies.create(draft, &author).await });
    }
    let results = writes.join_all().await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| is_full(result)).count(), 3, "{results:?}");
    assert_eq!(first.kept.load().await.unwrap().1.len(), 3);
}

async fn existing_policies_beyond_the_maximum_are_kept(home: &Home) {
    let unbounded = Replica::start(home).await;
    let mut policies = Vec::new();
    for subject in ["t1", "t2", "t3", "t4", "t5"] {
        policies.push(unbounded.create(of(subject)).await);
    }
    let bounded = unbounded.bounded(home, 3);
    assert_eq!(bounded.kept.load().await.unwrap().1.len(), 5);
    let author = bounded.author();
    bounded.policies.replace(&policies[0].id, &of("changed"), &author).await.unwrap();
    bounded.policies.delete(&policies[1].id, &author).await.unwrap();
    let refused = try_create(&bounded, "new").await;
    assert!(is_full(&refused), "{refused:?}");
}
