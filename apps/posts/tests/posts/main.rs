//! The posting API as its callers see it: real sockets, every store, a manual clock.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod concurrency;
mod content;
mod docs;
mod early;
mod flow;
mod harness;
mod items;
mod logs;
mod outage;
mod process;
mod reads;
mod requests;
mod time;
mod tls;
mod validation;

/// Runs each of these tests on the embedded default and on DynamoDB.
macro_rules! on_every_store {
    ($($test:ident),+ $(,)?) => {
        mod embedded {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::harness::Server::embedded().await).await;
            })+
        }

        mod dynamodb {
            $(#[tokio::test]
            async fn $test() {
                let dynamodb = headgate_testkit::require!($crate::harness::dynamodb().await);
                super::$test($crate::harness::Server::on_dynamodb(&dynamodb).await).await;
            })+
        }
    };
}
use on_every_store;
