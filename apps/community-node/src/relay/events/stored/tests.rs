use super::*;
use crate::relay::{
    events::Source,
    filter::queries,
    samples::{NOW, event, keys, signed_by, verified},
};

const ROOMY: Capacity = Capacity { max_events: 100, max_bytes: 1 << 20 };

fn keep(kept: &mut StoredEvents, topics: &[&str], created_at: Second, content: &str, at: Second) {
    add(kept, verified(&event(topics, created_at, content)), at);
}

/// Stores an event as if it were published.
fn add(kept: &mut StoredEvents, event: VerifiedEvent, at: Second) {
    let deleted_topics = kept.delete(&event);
    let number = kept.next_number();
    let source = Source::Client;
    kept.keep(Arc::new(Published { event, number, source, at, deleted_topics }));
}

fn find(kept: &StoredEvents, filters: &[&str]) -> Vec<String> {
    let raw: Vec<_> = filters
        .iter()
        .map(|filter| serde_json::value::RawValue::from_string((*filter).to_owned()).unwrap())
        .collect();
    let parts: Vec<_> = raw.iter().map(|raw| &**raw).collect();
    let queries = queries(&parts, NOW).unwrap();
    let mut walk = Walk::new(&queries, kept.last_number(), NOW);
    while {
        let seen = kept.step(&mut walk);
        walk.take(seen, |_| true)
    } {}
    let found = walk.found();
    found.iter().map(|published| published.event.event.content.clone()).collect()
}

#[test]
fn results_are_newest_first_in_any_order_of_arrival() {
    let mut kept = StoredEvents::new(ROOMY);
    for (age, content) in [(30, "old"), (10, "new"), (20, "middle")] {
        keep(&mut kept, &["a"], NOW - age, content, NOW);
    }
    keep(&mut kept, &["b"], NOW - 5, "other", NOW);
    assert_eq!(find(&kept, &[r##"{"#t":["a"]}"##]), ["new", "middle", "old"]);
    assert_eq!(find(&kept, &[r##"{"#t":["a"],"limit":2}"##]), ["new", "middle"]);
    assert_eq!(find(&kept, &[r##"{"#t":["a","b"],"limit":2}"##]), ["other", "new"]);
    let both = [r##"{"#t":["b"]}"##, r##"{"#t":["a"],"limit":1}"##, r##"{"#t":["a"],"limit":1}"##];
    assert_eq!(find(&kept, &both), ["other", "new"], "each once");
    assert!(find(&kept, &[r##"{"#t":["c"]}"##]).is_empty());
}

#[test]
fn time_ranges_are_inclusive() {
    let mut kept = StoredEvents::new(ROOMY);
    for age in [0, 10, 20, 30] {
        keep(&mut kept, &["a"], NOW - age, &age.to_string(), NOW);
    }
    let between = format!(r##"{{"#t":["a"],"since":{},"until":{}}}"##, NOW - 20, NOW - 10);
    assert_eq!(find(&kept, &[&between]), ["10", "20"]);
    let to_come = format!(r##"{{"#t":["a"],"since":{}}}"##, NOW + 10);
    assert!(find(&kept, &[&to_come]).is_empty());
}

#[test]
fn events_are_evicted_first_in_first_out_without_leftovers() {
    let mut kept = StoredEvents::new(Capacity { max_events: 2, ..ROOMY });
    keep(&mut kept, &["a", "b"], NOW, "1", NOW);
    let first = kept.arrivals[&1].event.event.id;
    assert!(kept.contains(&first));
    keep(&mut kept, &["a"], NOW - 1, "2", NOW);
    keep(&mut kept, &["a"], NOW - 2, "3", NOW);
    assert_eq!(find(&kept, &[r##"{"#t":["a"]}"##]), ["2", "3"]);
    assert!(!kept.contains(&first));
    assert!(!kept.topics.contains_key("b"), "a topic without events is removed");
}

#[test]
fn stored_bytes_are_bounded() {
    let mut kept = StoredEvents::new(Capacity { max_events: 100, max_bytes: 10_000 });
    for n in 0..20_u64 {
        keep(&mut kept, &["a"], NOW - n, &"x".repeat(500), NOW);
        assert!(kept.bytes <= 10_000);
    }
    assert!((1..20).contains(&kept.arrivals.len()));
    kept.forget_before(NOW + 1);
    assert_eq!((kept.bytes, kept.arrivals.len(), kept.topics.len()), (0, 0, 0));
}

#[test]
fn old_events_are_removed() {
    let mut kept = StoredEvents::new(ROOMY);
    keep(&mut kept, &["a"], NOW, "1", NOW - 10);
    keep(&mut kept, &["a"], NOW, "2", NOW - 9);
    kept.forget_before(NOW - 9);
    assert_eq!(find(&kept, &[r##"{"#t":["a"]}"##]), ["2"]);
}

#[test]
fn a_walk_visits_each_event_once_and_is_bounded() {
    let mut kept = StoredEvents::new(Capacity { max_events: 100_000, max_bytes: usize::MAX });
    let topics: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    for n in 0..210 {
        keep(&mut kept, &names, NOW - 10 - n, &n.to_string(), NOW);
    }
    let walked = |filter: String| {
        let raw = serde_json::value::RawValue::from_string(filter).unwrap();
        let queries = queries(&[&*raw; 10], NOW).unwrap();
        let mut walk = Walk::new(&queries, kept.last_number(), NOW);
        let mut seen = Vec::new();
        loop {
            let step = kept.step(&mut walk);
            seen.extend(step.iter().map(|published| published.number));
            if !walk.take(step, |_| true) {
                return (seen, walk.found().len());
            }
        }
    };
    // Ten queries about fifty topics: fifty entries for each event, and no more than 10,000.
    let (seen, found) = walked(format!(r##"{{"#t":{topics:?},"kinds":[2]}}"##));
    assert_eq!(seen, (1..=200).collect::<Vec<_>>());
    assert_eq!(found, 0);
    let (seen, found) = walked(format!(r##"{{"#t":{topics:?},"limit":3}}"##));
    assert_eq!((seen.len(), found), (5, 3), "no further than the step that finds enough");
    let (seen, _) = walked(format!(r##"{{"#t":{topics:?},"since":{NOW}}}"##));
    assert!(seen.is_empty(), "no stored events are visited for new ones");
}

#[test]
fn events_published_during_a_walk_are_not_part_of_it() {
    let mut kept = StoredEvents::new(ROOMY);
    keep(&mut kept, &["a"], NOW - 10, "before", NOW);
    let raw = serde_json::value::RawValue::from_string(r##"{"#t":["a"]}"##.to_owned()).unwrap();
    let queries = queries(&[&*raw], NOW).unwrap();
    let mut walk = Walk::new(&queries, kept.last_number(), NOW);
    keep(&mut kept, &["a"], NOW - 20, "meanwhile", NOW);
    let seen = kept.step(&mut walk);
    assert_eq!(seen.len(), 2);
    walk.take(seen, |_| true);
    assert_eq!(walk.found().len(), 1);
}

fn ids(kept: &StoredEvents) -> Vec<EventId> {
    kept.newest(usize::MAX).iter().map(|published| published.event.event.id).collect()
}

#[test]
fn a_newer_event_replaces_the_older_one_at_its_address() {
    let mut kept = StoredEvents::new(ROOMY);
    let at = |kind, name, age| signed_by(1, kind, &[["t", "a"], ["d", name]], NOW - age);
    let (old, new, other) = (at(30_000, "x", 20), at(30_000, "x", 10), at(30_000, "y", 20));
    let (profile, newer_profile) = (at(0, "x", 20), at(0, "y", 10));
    for event in [&old, &other, &profile, &new, &newer_profile] {
        assert!(!kept.has_newer(&verified(event)));
        add(&mut kept, verified(event), NOW);
    }
    assert_eq!(ids(&kept), [newer_profile.id, new.id, other.id]);
    assert!(kept.has_newer(&verified(&old)) && kept.has_newer(&verified(&profile)));
    let of_another = signed_by(2, 30_000, &[["t", "a"], ["d", "x"]], NOW - 30);
    assert!(!kept.has_newer(&verified(&of_another)));
    // Of the same second, the lower id is kept.
    let mut twins = [at(30_000, "z", 5), signed_by(1, 30_000, &[["t", "b"], ["d", "z"]], NOW - 5)];
    twins.sort_by_key(|event| event.id);
    let [lower, higher] = twins;
    add(&mut kept, verified(&higher), NOW);
    assert!(!kept.has_newer(&verified(&lower)));
    add(&mut kept, verified(&lower), NOW);
    assert!(kept.has_newer(&verified(&higher)) && !kept.contains(&higher.id));
    kept.forget_before(NOW + 1);
    assert_eq!((kept.bytes, kept.addresses.len(), kept.topics.len()), (0, 0, 0));
}

#[test]
fn deleted_events_are_removed_and_not_accepted_again() {
    let mut kept = StoredEvents::new(ROOMY);
    let note = signed_by(1, 1, &[["t", "a"]], NOW - 20);
    let of_another = signed_by(2, 1, &[["t", "a"]], NOW - 20);
    let article = |age| signed_by(1, 30_023, &[["t", "b"], ["d", "x"]], NOW - age);
    for event in [&note, &of_another, &article(20)] {
        add(&mut kept, verified(event), NOW);
    }
    let address = format!("30023:{}:x", keys(1).public_key().to_hex());
    let (id, other) = (note.id.to_hex(), of_another.id.to_hex());
    let tags = [["e", id.as_str()], ["e", other.as_str()], ["a", address.as_str()], ["k", "1"]];
    let deletion = signed_by(1, 5, &tags, NOW - 10);
    add(&mut kept, verified(&deletion), NOW);
    assert_eq!(ids(&kept), [deletion.id, of_another.id]);
    assert_eq!(*kept.arrivals[&4].deleted_topics, [Box::from("a"), Box::from("b")]);
    assert!(kept.has_deleted(&verified(&note)) && !kept.has_deleted(&verified(&of_another)));
    assert!(kept.has_deleted(&verified(&article(10))), "up to the time of the deletion");
    assert!(!kept.has_deleted(&verified(&article(9))));
    // A deletion cannot be deleted.
    let id = deletion.id.to_hex();
    let second = signed_by(1, 5, &[["e", &id]], NOW);
    add(&mut kept, verified(&second), NOW);
    assert!(kept.contains(&deletion.id) && !kept.has_deleted(&verified(&deletion)));
    kept.forget_before(NOW + 1);
    assert_eq!(kept.bytes, 0);
    assert!(!kept.has_deleted(&verified(&note)), "nothing is left of a removed deletion");
}

#[test]
fn expired_events_are_not_found_and_then_removed() {
    let mut kept = StoredEvents::new(ROOMY);
    let end = (NOW + 1).to_string();
    let event = verified(&signed_by(1, 1, &[["t", "a"], ["expiration", &end]], NOW - 20));
    add(&mut kept, event, NOW);
    keep(&mut kept, &["a"], NOW - 10, "stays", NOW);
    let raw = serde_json::value::RawValue::from_string(r##"{"#t":["a"]}"##.to_owned()).unwrap();
    let queries = queries(&[&*raw], NOW).unwrap();
    let found = |kept: &StoredEvents, now| {
        let mut walk = Walk::new(&queries, kept.last_number(), now);
        let seen = kept.step(&mut walk);
        walk.take(seen, |_| true);
        walk.found().len()
    };
    assert_eq!((found(&kept, NOW), found(&kept, NOW + 1)), (2, 1));
    kept.forget_expired(NOW);
    assert_eq!(kept.arrivals.len(), 2);
    kept.forget_expired(NOW + 1);
    assert_eq!((kept.arrivals.len(), kept.expiring.len()), (1, 0));
}

#[test]
fn index_entries_of_an_event_are_part_of_its_cost() {
    let cost_of = |kind, tags: &[[&str; 2]]| {
        let event = verified(&signed_by(1, kind, tags, NOW));
        let source = Source::Client;
        let deleted_topics = Box::default();
        cost(&Published { event, number: 1, source, at: NOW, deleted_topics })
    };
    let ids: Vec<String> = (0..200).map(|n| format!("{n:064x}")).collect();
    let tags: Vec<[&str; 2]> = ids.iter().map(|id| ["e", id.as_str()]).collect();
    let mut with_topic = tags[1..].to_vec();
    with_topic.push(["t", &ids[0]]);
    // The same tags, in a deletion and in another event.
    let deleting = cost_of(5, &tags).saturating_sub(cost_of(1, &with_topic));
    assert!(deleting >= 199 * std::mem::size_of::<Target>(), "{deleting}");
    let name = "x".repeat(1_000);
    let tags = [["t", "a"], ["d", name.as_str()]];
    let named = cost_of(30_000, &tags) - cost_of(1, &tags);
    assert!(named >= 2 * (name.len() + std::mem::size_of::<Address>()), "{named}");
}
