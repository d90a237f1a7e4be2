use headgate::LeasePolicy;

use super::*;

fn draft() -> Draft {
    Draft {
        scope: "user".to_owned().into(),
        identifier_pattern: "*".to_owned().into(),
        limit: 100.into(),
        window_seconds: 60.into(),
        ..Draft::default()
    }
}

fn messages(draft: Draft) -> Vec<String> {
    draft.validate(None).unwrap_err().into_iter().map(|error| error.message).collect()
}

#[test]
fn scope_pattern_limit_and_window_are_sufficient() {
    let spec = draft().validate(None).unwrap();
    assert_eq!(spec.key(), "user:*");
    assert_eq!(spec.display_name(), "user:*");
    assert_eq!((spec.limit, spec.window_seconds, spec.enabled), (100, 60, true));
    assert_eq!(spec.algorithm, Algorithm::TokenBucket);
    assert_eq!(Draft::from(&spec).validate(None), Ok(spec));
}

#[test]
fn all_errors_are_reported_at_once() {
    let nothing = messages(Draft::default());
    let required = ["scope", "identifier_pattern", "limit", "window_seconds"];
    assert_eq!(nothing, required.map(|field| format!("{field} is required")));

    let wrong = Draft {
        scope: "tenant".to_owned().into(),
        identifier_pattern: Input::WrongType("a list"),
        limit: 0.into(),
        window_seconds: (-1).into(),
        algorithm: "calendar".to_owned().into(),
        burst: 0.into(),
        fail_mode: "maybe".to_owned().into(),
        name: String::new().into(),
        lease: LeaseDraft { share_percent: 51.into(), hold_ms: (-1).into() }.into(),
        enabled: Input::WrongType("a string"),
        ..Draft::default()
    };
    let expected = [
        "scope must be one of: service, user, endpoint",
        "identifier_pattern must be a string, got a list",
        "limit must be greater than 0",
        "window_seconds must be greater than 0",
        "name must have 1 to 255 characters",
        "algorithm must be one of: token_bucket, sliding_window, sliding_window_counter, fixed_window, leaky_bucket, concurrency",
        "burst must be greater than 0",
        "fail_mode must be one of: capped, open, closed, local",
        "lease.share_percent must be 1 to 50, or 0 for no leases",
        "lease.hold_ms must be 10 to 1000",
        "enabled must be a boolean, got a string",
    ];
    assert_eq!(messages(wrong), expected);
}

#[test]
fn a_lease_fits_into_its_window() {
    let lease =
        |share: i64, hold: i64| LeaseDraft { share_percent: share.into(), hold_ms: hold.into() };
    let of = |window: i64, lease: LeaseDraft| Draft {
        window_seconds: window.into(),
        lease: lease.into(),
        ..draft()
    };
    let spec = of(2, lease(10, 200)).validate(None).unwrap();
    assert_eq!(spec.lease.unwrap().to_string(), "10%/200ms");
    assert_eq!(Draft::from(&spec).validate(None), Ok(spec.clone()));
    let long = ["lease.hold_ms must be at most 100, a tenth of the window"];
    assert_eq!(messages(of(1, lease(10, 200))), long);
    let shorter = Draft { window_seconds: 1.into(), ..draft() };
    let kept = shorter.validate(Some(&spec)).unwrap_err();
    assert_eq!((kept[0].field, &*kept[0].message), ("lease.hold_ms", long[0]), "of an update");

    let off = of(1, LeaseDraft { share_percent: 0.into(), ..LeaseDraft::default() });
    assert_eq!(off.validate(None).unwrap().lease, Some(LeasePolicy::OFF));
    let removed = Draft { lease: Input::Null, ..draft() };
    assert_eq!(removed.validate(Some(&spec)).unwrap().lease, None);
    let missing = of(60, LeaseDraft { share_percent: 10.into(), ..LeaseDraft::default() });
    assert_eq!(messages(missing), ["lease.hold_ms is required"]);
    let text = Draft { lease: Input::WrongType("a string"), ..draft() };
    let expected = "lease must be an object with share_percent and hold_ms, got a string";
    assert_eq!(messages(text), [expected]);
}

#[test]
fn rejects_invalid_combinations_of_numbers() {
    let of = |limit: i64, window: i64, algorithm: &str| Draft {
        limit: limit.into(),
        window_seconds: window.into(),
        algorithm: algorithm.to_owned().into(),
        ..draft()
    };
    assert_eq!(messages(of(1 << 40, 60, "token_bucket")), ["limit must be at most 4294967295"]);
    assert_eq!(
        messages(of(1, 40_000_000, "token_bucket")),
        ["window_seconds must be at most 31622400"]
    );
    assert_eq!(
        messages(of(100_001, 60, "sliding_window")),
        ["limit of sliding_window must be at most 100000, got 100001"]
    );
    let bursting = Draft { burst: 5.into(), ..of(1, 60, "fixed_window") };
    let expected = "fixed_window has no burst: only token_bucket and leaky_bucket do";
    assert_eq!(messages(bursting), [expected]);
}

#[test]
fn missing_fields_are_kept_and_null_fields_removed() {
    let full = Draft {
        name: "all".to_owned().into(),
        burst: 5.into(),
        fail_mode: "closed".to_owned().into(),
        enabled: false.into(),
        ..draft()
    };
    let current = full.validate(None).unwrap();
    let kept = draft().validate(Some(&current)).unwrap();
    assert_eq!(kept, current);

    let dropping = Draft { name: Input::Null, burst: Input::Null, ..draft() };
    let dropped = dropping.validate(Some(&current)).unwrap();
    assert_eq!((dropped.name, dropped.burst), (None, None));
    assert_eq!(dropped.fail_mode, Some(FailMode::Closed));
}
