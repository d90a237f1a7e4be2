use super::*;
use crate::relay::{
    events::Source,
    filter::queries,
    samples::{NOW, event, verified},
};

const ROOMY: Capacity = Capacity { max_events: 100, max_bytes: 1 << 20 };

fn keep(kept: &mut Kept, topics: &[&str], created_at: Second, content: &str, at: Second) {
    let event = verified(&event(topics, created_at, content));
    let number = kept.next_number();
    kept.keep(Arc::new(Published { event, number, source: Source::Client, at }));
}

fn find(kept: &Kept, filters: &[&str]) -> Vec<String> {
    let raw: Vec<_> = filters
        .iter()
        .map(|filter| serde_json::value::RawValue::from_string((*filter).to_owned()).unwrap())
        .collect();
    let parts: Vec<_> = raw.iter().map(|raw| &**raw).collect();
    let found = kept.find(&queries(&parts, NOW).unwrap());
    found.iter().map(|published| published.event.event.content.clone()).collect()
}

#[test]
fn what_is_found_is_newest_first_whenever_it_came() {
    let mut kept = Kept::new(ROOMY);
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
fn both_ends_of_the_time_belong_to_it() {
    let mut kept = Kept::new(ROOMY);
    for age in [0, 10, 20, 30] {
        keep(&mut kept, &["a"], NOW - age, &age.to_string(), NOW);
    }
    let between = format!(r##"{{"#t":["a"],"since":{},"until":{}}}"##, NOW - 20, NOW - 10);
    assert_eq!(find(&kept, &[&between]), ["10", "20"]);
    let to_come = format!(r##"{{"#t":["a"],"since":{}}}"##, NOW + 10);
    assert!(find(&kept, &[&to_come]).is_empty());
}

#[test]
fn the_first_to_come_is_the_first_to_go_and_nothing_stays_of_it() {
    let mut kept = Kept::new(Capacity { max_events: 2, ..ROOMY });
    keep(&mut kept, &["a", "b"], NOW, "1", NOW);
    let first = kept.arrivals[0].event.event.id;
    assert!(kept.contains(&first));
    keep(&mut kept, &["a"], NOW - 1, "2", NOW);
    keep(&mut kept, &["a"], NOW - 2, "3", NOW);
    assert_eq!(find(&kept, &[r##"{"#t":["a"]}"##]), ["2", "3"]);
    assert!(!kept.contains(&first));
    assert!(!kept.topics.contains_key("b"), "a topic without events is forgotten");
}

#[test]
fn bytes_are_bounded_too() {
    let mut kept = Kept::new(Capacity { max_events: 100, max_bytes: 10_000 });
    for n in 0..20_u64 {
        keep(&mut kept, &["a"], NOW - n, &"x".repeat(500), NOW);
        assert!(kept.bytes <= 10_000);
    }
    assert!((1..20).contains(&kept.arrivals.len()));
    kept.forget_before(NOW + 1);
    assert_eq!((kept.bytes, kept.arrivals.len(), kept.topics.len()), (0, 0, 0));
}

#[test]
fn what_came_too_long_ago_is_forgotten() {
    let mut kept = Kept::new(ROOMY);
    keep(&mut kept, &["a"], NOW, "1", NOW - 10);
    keep(&mut kept, &["a"], NOW, "2", NOW - 9);
    kept.forget_before(NOW - 9);
    assert_eq!(find(&kept, &[r##"{"#t":["a"]}"##]), ["2"]);
}
