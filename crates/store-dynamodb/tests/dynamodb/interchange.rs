//! Items that other programs wrote.

use std::time::Duration;

use headgate::{StoreError, Verb};
use headgate_store_dynamodb::aws_sdk_dynamodb::types::AttributeValue;
use headgate_testkit::{DynamoDb, require};

use crate::support::{START, Scene, acquire, apply, cooldown, number, per_minute, string};

#[tokio::test]
async fn a_cooldown_is_active_if_and_only_if_it_expires_later() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    scene.put("ip#x", &[("expires_at", number(1_772_928_300))]).await;
    let end = headgate::Timestamp::from_micros(1_772_928_300_000_000);
    let before = |micros: u64| headgate::Timestamp::from_micros(end.as_micros() - micros);
    for now in [START, before(1_000_000), before(1)] {
        scene.clock.set(now);
        for verb in [Verb::Peek, Verb::Acquire] {
            let outcome = scene.apply(verb, "ip#x", &cooldown()).await;
            assert!(!outcome.allowed, "at {now}");
            assert_eq!(outcome.retry_after, Duration::from_micros(end.since(now)));
        }
    }
    // `expires_at == now` is free, even if the item is not deleted yet, and the item is
    // overwritten.
    scene.clock.set(end);
    assert!(scene.apply(Verb::Peek, "ip#x", &cooldown()).await.allowed);
    assert!(scene.apply(Verb::Acquire, "ip#x", &cooldown()).await.allowed);
    assert_eq!(scene.expires_at("ip#x").await, 1_772_928_600);
    assert!(!scene.apply(Verb::Acquire, "ip#x", &cooldown()).await.allowed);
}

#[tokio::test]
async fn an_expired_item_does_not_limit() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    assert!(scene.apply(Verb::Acquire, "k", &cooldown()).await.allowed);
    scene.clock.advance(Duration::from_secs(299));
    assert!(!scene.apply(Verb::Peek, "k", &cooldown()).await.allowed);
    scene.clock.advance(Duration::from_secs(1));
    assert!(scene.item("k").await.is_some());
    assert!(scene.apply(Verb::Peek, "k", &cooldown()).await.allowed);
    assert!(scene.apply(Verb::Acquire, "k", &cooldown()).await.allowed);
}

#[tokio::test]
async fn an_expiry_set_by_another_program_takes_precedence() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    assert!(scene.apply(Verb::Acquire, "k", &cooldown()).await.allowed);
    let update =
        scene.client().update_item().table_name(&scene.table).key("identifier", string("k"));
    let update = update.update_expression("SET expires_at = :later");
    update.expression_attribute_values(":later", number(1_772_928_900)).send().await.unwrap();
    scene.clock.advance(Duration::from_secs(600));
    let outcome = scene.apply(Verb::Acquire, "k", &cooldown()).await;
    assert!(!outcome.allowed);
    assert_eq!(outcome.retry_after, Duration::from_millis(299_500));
}

#[tokio::test]
async fn a_foreign_item_is_an_error_of_that_key_until_a_reset() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    let later = || ("expires_at", number(1_772_929_000));
    let ours = |attributes: &[(&str, AttributeValue)]| {
        let state = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let whole = state.chain([("expires_at".to_owned(), number(1_772_929_000))]);
        ("state", AttributeValue::M(whole.collect()))
    };
    scene.put("no-expiry", &[("name", string("Taro"))]).await;
    scene.put("text-expiry", &[("expires_at", string("1772929000"))]).await;
    scene.put("far-expiry", &[("expires_at", number(u64::MAX))]).await;
    scene.put("text-version", &[later(), ("version", string("one"))]).await;
    scene.put("text-state", &[later(), ("state", string("full"))]).await;
    scene.put("empty-state", &[later(), ours(&[])]).await;
    scene.put("half-state", &[later(), ours(&[("at", number(1)), ("full_at", number(9))])]).await;
    // The end of a cooldown does not define the state of a bucket of five.
    scene.put("end-alone", &[later()]).await;

    let limit = per_minute(5);
    let names = [
        "no-expiry",
        "text-expiry",
        "far-expiry",
        "text-version",
        "text-state",
        "empty-state",
        "half-state",
        "end-alone",
    ];
    for name in names {
        let error = acquire(&scene.store, &[name], &limit).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt(_)), "{name}: {error}");
        assert!(!error.is_outage() && !error.to_string().contains(name), "{error}");
        assert!(acquire(&scene.store, &[&format!("healthy-{name}")], &limit).await.is_ok());
        // A batch with a valid key fails as a whole: nothing is taken from either.
        let error = acquire(&scene.store, &["untouched", name], &limit).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt(_)), "{name}: {error}");
        apply(&scene.store, Verb::Reset, &[name], &limit).await.unwrap();
        assert!(scene.apply(Verb::Acquire, name, &limit).await.allowed);
    }
    assert_eq!(scene.apply(Verb::Peek, "untouched", &limit).await.remaining, 5);
}
