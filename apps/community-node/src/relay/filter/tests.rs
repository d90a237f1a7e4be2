use super::*;
use crate::relay::samples::{NOW, event, tagged, verified};

const DAY: Second = SECONDS_A_DAY;

fn query(json: &str) -> Result<Query, FilterError> {
    Query::read(json, NOW)
}

fn within(since: Second, until: Second) -> Result<Query, FilterError> {
    query(&format!(r##"{{"#t":["a"],"since":{since},"until":{until}}}"##))
}

#[test]
fn a_topic_is_required() {
    assert_eq!(query("{}").unwrap_err(), FilterError::NoTopic);
    assert_eq!(query(r##"{"#t":[]}"##).unwrap_err(), FilterError::NoTopic);
    assert_eq!(query(r##"{"#p":["a"],"kinds":[1]}"##).unwrap_err(), FilterError::NoTopic);
    let topics = query(r##"{"#t":["a","b"]}"##).unwrap();
    assert_eq!(topics.topics().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(query("7").unwrap_err(), FilterError::Malformed);
    assert_eq!(query(r##"{"#t":["a"],"ids":["x"]}"##).unwrap_err(), FilterError::Malformed);
}

#[test]
fn a_subscription_has_one_to_ten_filters() {
    let raw = RawValue::from_string(r##"{"#t":["a"]}"##.to_owned()).unwrap();
    assert_eq!(queries(&[], NOW).unwrap_err(), FilterError::None);
    assert_eq!(queries(&[&*raw; 10], NOW).unwrap().len(), 10);
    assert_eq!(queries(&[&*raw; 11], NOW).unwrap_err(), FilterError::TooMany);
}

#[test]
fn no_list_has_more_than_200_values() {
    let kinds = |n: u32| {
        let kinds: Vec<u32> = (0..n).collect();
        query(&format!(r##"{{"#t":["a"],"kinds":{kinds:?}}}"##))
    };
    assert!(kinds(200).is_ok());
    assert_eq!(kinds(201).unwrap_err(), FilterError::TooManyValues);
    let topics: Vec<String> = (0..201).map(|n| n.to_string()).collect();
    let refused = query(&format!(r##"{{"#t":{topics:?}}}"##)).unwrap_err();
    assert_eq!(refused, FilterError::TooManyValues);
}

#[test]
fn time_is_bounded() {
    assert!(within(NOW - 7 * DAY, NOW).is_ok());
    assert_eq!(within(NOW - 7 * DAY - 1, NOW).unwrap_err(), FilterError::TooLongAWindow);
    assert_eq!(within(NOW, NOW - 1).unwrap_err(), FilterError::SinceAfterUntil);
    assert!(within(NOW - 30 * DAY, NOW - 23 * DAY).is_ok());
    let too_long_ago = within(NOW - 30 * DAY - 1, NOW - 29 * DAY).unwrap_err();
    assert_eq!(too_long_ago, FilterError::TooLongAgo);
    // The future does not count.
    assert!(within(NOW - DAY, NOW + 365 * DAY).is_ok());
}

#[test]
fn without_since_a_filter_covers_the_last_week() {
    let query = query(r##"{"#t":["a"]}"##).unwrap();
    assert_eq!(query.kept(), Some((NOW - 7 * DAY, Second::MAX)));
    assert!(query.is_backfill());
    let before = self::query(&format!(r##"{{"#t":["a"],"until":{}}}"##, NOW - 8 * DAY)).unwrap();
    assert_eq!(before.kept(), Some((NOW - 15 * DAY, NOW - 8 * DAY)));
    let long_ago = format!(r##"{{"#t":["a"],"until":{}}}"##, NOW - 24 * DAY);
    assert_eq!(self::query(&long_ago).unwrap_err(), FilterError::TooLongAgo);
}

#[test]
fn a_recent_since_asks_for_no_stored_events() {
    let since = |second: Second| query(&format!(r##"{{"#t":["a"],"since":{second}}}"##)).unwrap();
    assert!(since(NOW - 6).is_backfill());
    assert!(!since(NOW - 5).is_backfill());
    assert!(!since(NOW + 100).is_backfill());
    // A query without backfill reads next to nothing.
    assert_eq!(since(NOW - 6).kept(), Some((NOW - 6, Second::MAX)));
    assert_eq!(since(NOW - 5).kept(), Some((NOW - 5, NOW)));
    assert_eq!(since(NOW).kept(), None);
    assert_eq!(since(NOW + 100).kept(), None);
}

#[test]
fn a_limit_of_0_asks_for_nothing_that_is_kept() {
    for more in ["", ",\"since\":1", ",\"until\":1"] {
        let query = query(&format!(r##"{{"#t":["a"],"limit":0{more}}}"##)).unwrap();
        assert_eq!((query.kept(), query.is_backfill()), (None, false), "{more}");
    }
    assert!(
        query(r##"{"#t":["a"],"limit":0}"##).unwrap().matches(&verified(&tagged(&[["t", "a"]])))
    );
    let backwards = r##"{"#t":["a"],"limit":0,"since":2,"until":1}"##;
    assert_eq!(query(backwards).unwrap_err(), FilterError::SinceAfterUntil);
}

#[test]
fn limits_are_clamped() {
    let limit = |limit: &str| query(&format!(r##"{{"#t":["a"]{limit}}}"##)).unwrap().limit;
    assert_eq!(limit(""), DEFAULT_LIMIT);
    assert_eq!(limit(",\"limit\":7"), 7);
    assert_eq!(limit(",\"limit\":5000"), MAX_LIMIT);
}

#[test]
fn all_fields_of_a_filter_must_match_and_search_is_ignored() {
    let event = verified(&event(&["a"], NOW, "hello"));
    assert!(query(r##"{"#t":["a","b"],"kinds":[1],"search":"x"}"##).unwrap().matches(&event));
    assert!(!query(r##"{"#t":["b"]}"##).unwrap().matches(&event));
    assert!(!query(r##"{"#t":["a"],"kinds":[2]}"##).unwrap().matches(&event));
    assert!(!query(r##"{"#t":["a"],"#x":["a"]}"##).unwrap().matches(&event));
    let mut tags = vec![["t", "a"], ["p", "1"], ["e", "2"], ["p", "3"], ["P", "4"], ["pp", "5"]];
    for _ in 0..tags.len() {
        tags.rotate_left(1);
        let event = verified(&tagged(&tags));
        for (wanted, is_there) in
            [("1", true), ("2", false), ("3", true), ("4", false), ("5", false)]
        {
            let query = query(&format!(r##"{{"#t":["a"],"#p":["{wanted}","x"]}}"##)).unwrap();
            assert_eq!(query.matches(&event), is_there, "{wanted} among {tags:?}");
        }
        assert!(!query(r##"{"#t":["a"],"#p":["1"],"#e":["1"]}"##).unwrap().matches(&event));
    }
    let later = format!(r##"{{"#t":["a"],"since":{}}}"##, NOW + 1);
    assert!(!query(&later).unwrap().matches(&event));
}
