//! Quotas that cannot be committed affect no others.

use futures_util::future::join_all;
use headgate_quota::{
    Draft, QuotaPolicy, RepositoryError,
    usecase::{IncrementError, Incremented},
};
use headgate_testkit::require;

use super::setup::{Replica, draft};
use crate::support::{Home, on_both, run};

on_both!(a_corrupt_policy_fails_no_other, a_refused_value_fails_no_other);

/// Creates policies that have been used once.
async fn policies(replica: &Replica, count: usize) -> Vec<QuotaPolicy> {
    let mut policies = Vec::new();
    for number in 0..count {
        let subject_id = format!("tenant-{number}").into();
        let policy = replica.create(Draft { subject_id, ..draft(1_000) }).await;
        replica.increment(&policy.id, 1).await;
        policies.push(policy);
    }
    policies
}

type Answer = Result<Incremented, IncrementError>;

/// Increments all policies at once; returns the answer of the first, and asserts that the others
/// succeed.
async fn first_of_all(replica: &Replica, policies: &[QuotaPolicy], request_id: &str) -> Answer {
    let sent = policies.iter().enumerate().map(|(number, policy)| async move {
        let own = format!("{request_id}_{number}");
        let id = if number == 0 { request_id } else { &*own };
        replica.try_increment(&policy.id, 1, id).await
    });
    let mut answers = join_all(sent).await;
    for answer in answers.drain(1..) {
        assert!(answer.unwrap().allowed);
    }
    answers.remove(0)
}

fn repository_error(answer: Answer) -> RepositoryError {
    match answer {
        Err(IncrementError::Repository(error)) => error,
        other => panic!("{other:?}"),
    }
}

async fn a_corrupt_policy_fails_no_other(home: &Home) {
    let replica = Replica::start(home).await;
    let policies = policies(&replica, 9).await;
    let mut console = home.console().await;
    console
        .run(match home {
            Home::Postgres(_) => "ALTER TABLE quota_policies DROP CONSTRAINT quota_policies_period",
            Home::Sqlite(_) => "PRAGMA ignore_check_constraints = ON",
        })
        .await;
    let id = &policies[0].id;
    let set = |period| format!("UPDATE quota_policies SET period = '{period}' WHERE id = '{id}'");
    console.run(&set("weekly")).await;
    for round in 0..5 {
        let answer = first_of_all(&replica, &policies, &format!("req_{round}")).await;
        let error = repository_error(answer);
        assert!(matches!(error, RepositoryError::Corrupt(_)), "{error}");
    }
    console.run(&set("daily")).await;
    assert!(first_of_all(&replica, &policies, "repaired").await.unwrap().allowed);
    assert_eq!(replica.kept(&policies[0]).await, 2);
    assert_eq!(replica.kept(&policies[8]).await, 7);
}

async fn a_refused_value_fails_no_other(home: &Home) {
    let replica = Replica::start(home).await;
    let policies = policies(&replica, 9).await;
    let mut console = home.console().await;
    console
        .run(match home {
            Home::Postgres(_) => {
                "ALTER TABLE quota_increments
                    ADD CONSTRAINT not_poison CHECK (request_id <> 'poison')"
            }
            Home::Sqlite(_) => {
                "CREATE TRIGGER not_poison BEFORE INSERT ON quota_increments
                    WHEN NEW.request_id = 'poison' BEGIN SELECT RAISE(ABORT, 'poison'); END"
            }
        })
        .await;
    for _ in 0..5 {
        let sent =
            policies[1..].iter().map(|policy| replica.increments.increment(&policy.id, 1, None));
        let poison = replica.try_increment(&policies[0].id, 1, "poison");
        let (answer, answers) = tokio::join!(poison, join_all(sent));
        let error = repository_error(answer);
        assert!(matches!(error, RepositoryError::Refused(_)), "{error}");
        for answer in answers {
            assert!(answer.unwrap().allowed);
        }
    }
    // The policy itself is fine.
    assert!(first_of_all(&replica, &policies, "harmless").await.unwrap().allowed);
    assert_eq!(replica.kept(&policies[0]).await, 2);
    assert_eq!(replica.kept(&policies[8]).await, 7);
    assert_eq!(replica.database.write_error(), None);
}

/// Locks the usage of policies, as an operator or a paused server does.
fn lock(policies: &[QuotaPolicy]) -> String {
    let ids: Vec<String> = policies.iter().map(|policy| format!("'{}'", policy.id)).collect();
    let ids = ids.join(", ");
    format!("BEGIN; SELECT FROM quota_usages WHERE policy_id IN ({ids}) FOR UPDATE")
}

#[test]
fn a_locked_quota_fails_no_other() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let policies = policies(&replica, 9).await;
        let mut console = home.console().await;
        console.run(&lock(&policies[..1])).await;
        for round in 0..2 {
            let answer = first_of_all(&replica, &policies, &format!("req_{round}")).await;
            let error = repository_error(answer);
            assert!(matches!(error, RepositoryError::Busy { .. }), "{error}");
            assert_eq!(replica.database.write_error(), None);
        }
        // Others do not wait for it, either.
        let locked = replica.try_increment(&policies[0].id, 1, "waiting");
        tokio::select! {
            biased;
            answer = locked => panic!("{answer:?}"),
            other = replica.increment(&policies[1].id, 1) => assert!(other.allowed),
        }
        console.run("ROLLBACK").await;
        // The caller that waited for it has gone away.
        assert!(replica.increment(&policies[0].id, 1).await.allowed);
        assert_eq!(replica.kept(&policies[1]).await, 4);
    });
}

#[test]
fn quotas_that_a_paused_server_holds_are_committed_when_it_lets_go() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let policies = policies(&replica, 40).await;
        let (held, free) = policies.split_at(20);
        let mut console = home.console().await;
        console.run(&lock(held)).await;
        let increment = |policy: &QuotaPolicy| {
            let id = policy.id.clone();
            let increments = &replica.increments;
            async move { increments.increment(&id, 1, None).await }
        };
        let rest = async {
            for answer in join_all(free.iter().map(increment)).await {
                assert!(answer.unwrap().allowed);
            }
            console.run("ROLLBACK").await;
        };
        let (answers, ()) = tokio::join!(join_all(held.iter().map(increment)), rest);
        for (policy, answer) in held.iter().zip(answers) {
            let charged = match answer {
                Ok(done) => u64::from(done.allowed),
                // The machine was too busy to let go in time.
                Err(IncrementError::Repository(RepositoryError::Busy { .. })) => 0,
                Err(error) => panic!("{error}"),
            };
            assert_eq!(replica.kept(policy).await, 1 + charged);
        }
        for policy in held {
            assert!(replica.increment(&policy.id, 1).await.allowed);
        }
    });
}

#[test]
fn a_bounded_number_of_operations_waits_for_a_locked_quota() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let policies = policies(&replica, 2).await;
        let mut console = home.console().await;
        console.run(&lock(&policies[..1])).await;
        let sent = (0..2_000).map(|_| replica.increments.increment(&policies[0].id, 1, None));
        let (answers, other) = tokio::join!(join_all(sent), replica.increment(&policies[1].id, 1));
        assert!(other.allowed);
        let errors = answers.into_iter().map(repository_error);
        let refused = errors.filter(|error| error.to_string().contains("too many operations"));
        // At most 1,024 waited beside one transaction of at most 512.
        assert!(refused.count() >= 2_000 - 1_024 - 512);
        console.run("ROLLBACK").await;
        assert!(replica.increment(&policies[0].id, 1).await.allowed);
        assert_eq!(replica.kept(&policies[0]).await, 2);
    });
}

#[test]
fn the_search_for_quotas_that_cannot_be_committed_ends() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let policies = policies(&replica, 33).await;
        let mut console = home.console().await;
        // To find 32 quotas takes 63 transactions, of a second each.
        let refuse_slowly = "
            CREATE FUNCTION refuse_slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                PERFORM pg_sleep(1);
                RAISE check_violation;
            END $$;
            CREATE TRIGGER refuse_slowly BEFORE INSERT ON quota_increments
                FOR EACH ROW WHEN (NEW.request_id = 'poison')
                EXECUTE FUNCTION refuse_slowly()";
        console.run(refuse_slowly).await;
        let before = replica.increments.tally().failures();
        let sent =
            policies[1..].iter().map(|policy| replica.try_increment(&policy.id, 1, "poison"));
        let errors = join_all(sent).await.into_iter().map(repository_error);
        let unfinished = errors.filter(|error| error.to_string().contains("too many quotas"));
        assert!(unfinished.count() > 0);
        // Ten seconds, and the transactions at their beginning and end; perhaps twice, because the
        // first transaction may begin before all are sent.
        assert!(replica.increments.tally().failures() - before <= 24);
        assert!(replica.increment(&policies[0].id, 1).await.allowed);
    });
}
