use serde_json::json;

use super::*;

fn holds(condition: &Json, value: &AttributeValue<'_>) -> bool {
    Condition::parse(condition).unwrap().holds(Some(value))
}

#[test]
fn each_form_of_a_condition_matches_as_documented() {
    for (condition, matching, others) in [
        (json!("acme"), &["acme"][..], &["Acme", "acme2", ""][..]),
        (json!("/v1/*"), &["/v1/", "/v1/a"], &["/v1"]),
        (json!({"equals": "a*"}), &["a*"], &["ab"]),
        (json!(5), &["5"], &["5.0", "50"]),
        (json!(["POST", "PUT*"]), &["POST", "PUT", "PUTS"], &["POSTS"]),
        (json!({"one_of": ["a", 7]}), &["a", "7"], &["b"]),
        (json!({"prefix": "a*"}), &["a*b"], &["ab"]),
        (json!({"suffix": ".png"}), &["x.png"], &["png"]),
        (json!({"in": ["10.0.0.0/8", "::1"]}), &["10.1.1.1", "::1"], &["11.0.0.0", "x"]),
        (json!({"in": "10.0.0.0/8"}), &["10.1.1.1"], &["11.0.0.0"]),
        (json!({"not_in": ["10.0.0.0/8"]}), &["11.0.0.0"], &["10.1.1.1", "x"]),
        (json!({"min": 3}), &["3", "3.5", "1e3"], &["2.9", "x", "inf", "NaN"]),
        (json!({"min": 3, "max": 4}), &["3", "4.0"], &["5", "2"]),
        (json!({"regex": "[a-z]+"}), &["ab"], &["aB", ""]),
        (json!({"exists": true}), &["", "x"], &[]),
        (json!({"not": "a"}), &["b", ""], &["a"]),
        (json!({"not": {"prefix": "a", "suffix": "b"}}), &["a", "b"], &["ab"]),
        (json!({"prefix": "a", "not": ["ab", "ac"]}), &["a", "ad"], &["ab", "b"]),
    ] {
        for text in matching {
            assert!(holds(&condition, &(*text).into()), "{condition} {text}");
        }
        for text in others {
            assert!(!holds(&condition, &(*text).into()), "{condition} {text}");
        }
    }
}

#[test]
fn only_exists_false_accepts_a_missing_attribute() {
    for condition in [json!("*"), json!({"not": "a"}), json!({"not_in": ["::/0"]})] {
        assert!(!Condition::parse(&condition).unwrap().holds(None), "{condition}");
    }
    let absent = Condition::parse(&json!({"exists": false})).unwrap();
    assert!(absent.holds(None) && !absent.holds(Some(&"".into())));
}

#[test]
fn a_list_matches_if_an_item_does() {
    let list = AttributeValue::List(vec!["a".into(), "b".into()]);
    assert!(holds(&json!("a"), &list) && holds(&json!(["b", "c"]), &list));
    assert!(!holds(&json!("c"), &list));
    assert!(!holds(&json!({"not": "a"}), &list) && holds(&json!({"not": "c"}), &list));
    let empty = AttributeValue::List(Vec::new());
    assert!(!holds(&json!("*"), &empty) && holds(&json!({"exists": true}), &empty));
}

#[test]
fn all_errors_are_reported_with_what_to_do() {
    for (condition, expected) in [
        (json!(true), "must be a string, a number, a list or an object, got a boolean"),
        (json!(null), "must be a string, a number, a list or an object, got nothing"),
        (json!([]), "a list must have 1 to 256 items"),
        (json!([[]]), "an item must be a string or a number, got a list"),
        (json!({"prefix": 5}), "prefix must be a string, got a number"),
        (
            json!({"in": ["x"]}),
            "in: \"x\" is not a range of addresses; write one like 10.0.0.0/8 or 2001:db8::/32",
        ),
        (json!({"min": 4, "max": 3}), "min must not be greater than max"),
        (json!({"min": "a"}), "min must be a number, got a string"),
        (
            json!({"exists": false, "prefix": "a"}),
            "exists: false cannot be combined with other keys",
        ),
        (json!({"exists": 1}), "exists must be true or false, got a number"),
        (json!({"not": {"not": "a"}}), "not may not be within not"),
        (json!("x".repeat(513)), "a text must be at most 512 bytes long"),
    ] {
        assert_eq!(Condition::parse(&condition).unwrap_err(), [expected], "{condition}");
    }
    let several = Condition::parse(&json!({"prefix": 1, "sufix": "a"})).unwrap_err();
    assert_eq!(several.len(), 2);
    assert!(several[1].starts_with("unknown key \"sufix\"; known here: equals"), "{several:?}");
    assert!(Condition::parse(&json!({})).unwrap_err()[0].starts_with("an object needs one of"));
    assert!(Condition::parse(&json!(vec!["a"; 257])).is_err());
}

#[test]
fn contradictions_and_wider_conditions_are_found() {
    let parse = |json| Condition::parse(&json).unwrap();
    assert!(parse(json!({"equals": "a", "prefix": "b"})).is_contradictory());
    assert!(!parse(json!({"one_of": ["a", "b"], "prefix": "b"})).is_contradictory());
    for (wide, narrow, covers) in [
        (json!({"exists": true}), json!("a"), true),
        (json!("a*"), json!("ab*"), true),
        (json!("ab*"), json!("a*"), false),
        (json!(["a", "b"]), json!("a"), true),
        (json!("a"), json!(["a", "b"]), false),
        (json!({"in": ["10.0.0.0/8"]}), json!({"in": ["10.1.0.0/16"]}), true),
        (json!({"min": 1}), json!({"min": 2, "max": 3}), true),
        (json!({"min": 1, "max": 2}), json!({"min": 1}), false),
        (json!({"exists": false}), json!({"exists": false}), true),
        (json!({"exists": true}), json!({"exists": false}), false),
    ] {
        assert_eq!(parse(wide.clone()).covers(&parse(narrow.clone())), covers, "{wide} {narrow}");
    }
}
