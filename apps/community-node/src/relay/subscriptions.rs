//! Subscriptions of one connection.

use std::collections::HashMap;

use super::{events::Published, filter::Query, footprint, subscription_budget::SubscriptionBytes};

/// Maximum number of subscriptions of a connection.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 20;
/// Maximum memory of the subscriptions, in bytes.
pub(crate) const MAX_BYTES: usize = 262_144;
/// Maximum length of a subscription's name.
pub(crate) const MAX_ID_BYTES: usize = 64;

/// Subscriptions of one connection, by name.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(HashMap<SubscriptionId, Subscription>);

/// Name of a subscription, chosen by the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubscriptionId(Box<str>);

#[derive(Debug)]
struct Subscription {
    queries: Vec<Query>,
    bytes: SubscriptionBytes,
    /// Events up to this sequence number were sent already.
    after: u64,
}

/// Memory of a subscription, in bytes.
pub(crate) fn footprint(id: &SubscriptionId, queries: &[Query]) -> usize {
    let queries: usize = queries.iter().map(Query::footprint).sum();
    queries + footprint::text(id.as_str()) + footprint::slot::<(SubscriptionId, Subscription)>()
}

// === impl Subscriptions ===

impl Subscriptions {
    /// Returns true if there is room for `id` of this size; it replaces one of the same name.
    pub(crate) fn has_room_for(&self, id: &SubscriptionId, bytes: usize) -> bool {
        let others = self.0.iter().filter(|(other, _)| *other != id);
        let (count, held) = others.fold((0, 0), |(count, held), (_, subscription)| {
            (count + 1, held + subscription.bytes.count())
        });
        count < MAX_SUBSCRIPTIONS && held + bytes <= MAX_BYTES
    }

    /// Adds a subscription that takes `bytes` to new events that match `queries`, after the sequence
    /// number `after`.
    pub(super) fn open(
        &mut self,
        id: SubscriptionId,
        queries: Vec<Query>,
        bytes: SubscriptionBytes,
        after: u64,
    ) {
        self.0.insert(id, Subscription { queries, bytes, after });
    }

    /// Removes a subscription. Returns true if there was one.
    pub(crate) fn close(&mut self, id: &SubscriptionId) -> bool {
        self.0.remove(id).is_some()
    }

    /// Returns the subscriptions that match `published`.
    pub(crate) fn wanting<'s>(
        &'s self,
        published: &'s Published,
    ) -> impl Iterator<Item = &'s SubscriptionId> {
        let event = &published.event;
        let wanting = self.0.iter().filter(move |(_, subscription)| {
            published.number > subscription.after
                && subscription.queries.iter().any(|query| query.matches(event))
        });
        wanting.map(|(id, _)| id)
    }
}

// === impl SubscriptionId ===

impl SubscriptionId {
    /// Parses a name: a string that is neither empty nor too long.
    pub(crate) fn read(json: &str) -> Option<Self> {
        let id: Box<str> = serde_json::from_str(json).ok()?;
        (1..=MAX_ID_BYTES).contains(&id.len()).then_some(Self(id))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use prometheus::IntGauge;

    use super::{super::subscription_budget::SubscriptionBudget, *};

    #[test]
    fn names_are_short_texts() {
        assert_eq!(SubscriptionId::read("\"a\"").unwrap().as_str(), "a");
        let longest = format!("\"{}\"", "x".repeat(MAX_ID_BYTES));
        assert!(SubscriptionId::read(&longest).is_some());
        for bad in ["\"\"", "7", "null", &format!("\"{}\"", "x".repeat(MAX_ID_BYTES + 1))] {
            assert!(SubscriptionId::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn there_is_room_for_a_bounded_number_and_for_the_same_again() {
        let mut subscriptions = Subscriptions::default();
        let budget = SubscriptionBudget::new(100, IntGauge::new("used", "-").unwrap());
        let id = |n: usize| SubscriptionId::read(&format!("\"s{n}\"")).unwrap();
        for n in 0..MAX_SUBSCRIPTIONS {
            assert!(subscriptions.has_room_for(&id(n), 1));
            subscriptions.open(id(n), Vec::new(), budget.take(1).unwrap(), 0);
        }
        assert!(!subscriptions.has_room_for(&id(MAX_SUBSCRIPTIONS), 1));
        assert!(subscriptions.has_room_for(&id(0), 1));
        assert!(subscriptions.close(&id(0)));
        assert!(!subscriptions.close(&id(0)));
        assert!(subscriptions.has_room_for(&id(MAX_SUBSCRIPTIONS), 1));
        let others = MAX_SUBSCRIPTIONS - 1;
        assert!(subscriptions.has_room_for(&id(0), MAX_BYTES - others));
        assert!(!subscriptions.has_room_for(&id(0), MAX_BYTES - others + 1));
    }
}
