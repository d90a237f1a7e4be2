//! One of several servers delivers.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use headgate_testkit::{Postgres, require};

use super::{
    receiver::Receiver,
    support::{exhausted, list},
};
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_post_each_event_once_and_one_takes_over() {
    const SUBJECTS: usize = 20;
    let postgres = require!(Postgres::shared());
    let receiver = Receiver::start(&[]).await;
    // A delivery that times out on a busy machine would be repeated.
    let webhooks = receiver.config("correct-horse-battery", ", timeout_seconds: 60");
    let keys = [("database.url", postgres.url()), ("webhooks", &webhooks)];
    let (one, other) = (Server::start(&keys).await, Server::start(&keys).await);
    let both = [&one, &other];
    let subjects: Vec<String> = (0..SUBJECTS).map(|i| format!("tenant-{i}")).collect();
    let used = subjects.iter().enumerate().map(|(i, subject)| exhausted(both[i % 2], subject));
    join_all(used).await;
    let got = receiver.until(|got| got.len() >= 2 * SUBJECTS).await;
    let ids: HashSet<_> = got.iter().map(|it| it.header("x-headgate-delivery")).collect();
    assert_eq!((ids.len(), got.len()), (2 * SUBJECTS, 2 * SUBJECTS));
    assert_eq!(list(&other, "limit=100").await["events"].as_array().unwrap().len(), 2 * SUBJECTS);

    // The other server takes over.
    let ended = tokio::time::timeout(Duration::from_secs(60), one.stop()).await;
    ended.expect("in time").unwrap();
    exhausted(&other, "tenant-late").await;
    let got = receiver.until(|got| got.len() >= 2 * SUBJECTS + 2).await;
    assert_eq!(got.len(), 2 * SUBJECTS + 2);
    assert!(got[2 * SUBJECTS..].iter().all(|it| it.event()["subject_id"] == "tenant-late"));
}
