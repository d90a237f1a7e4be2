use super::*;

fn draft() -> Draft {
    Draft {
        name: "standard".to_owned().into(),
        subject_type: "tenant".to_owned().into(),
        subject_id: "tenant-abc".to_owned().into(),
        limit: 10_000.into(),
        period: "daily".to_owned().into(),
        ..Draft::default()
    }
}

fn errors(draft: Draft) -> Vec<(&'static str, String)> {
    let errors = draft.validate(None).unwrap_err();
    errors.into_iter().map(|error| (error.field, error.message)).collect()
}

#[test]
fn name_subject_limit_and_period_are_sufficient() {
    let spec = draft().validate(None).unwrap();
    assert_eq!(spec.subject, Subject { kind: SubjectType::Tenant, id: "tenant-abc".to_owned() });
    assert_eq!((spec.limit, spec.period, spec.enabled), (10_000, QuotaPeriod::Daily, true));
    assert_eq!((&spec.time_zone, spec.alert_threshold_percent), (&None, None));
    assert_eq!(Draft::from(&spec).validate(None), Ok(spec));
}

#[test]
fn all_errors_are_reported_at_once() {
    let required = ["name", "subject_type", "subject_id", "limit", "period"];
    let nothing = errors(Draft::default());
    assert_eq!(nothing, required.map(|field| (field, format!("{field} is required"))));

    let wrong = Draft {
        name: " ".to_owned().into(),
        subject_type: "group".to_owned().into(),
        subject_id: "a\nb".to_owned().into(),
        limit: 0.into(),
        period: "weekly".to_owned().into(),
        time_zone: "Mars/Olympus".to_owned().into(),
        enabled: Input::WrongType("a string"),
        alert_threshold_percent: 101.into(),
    };
    let expected = [
        ("name", "name must have 1 to 255 characters"),
        ("subject_type", "must be one of: tenant, user, api_key"),
        ("subject_id", "subject_id must not contain control characters"),
        ("limit", "limit must be greater than 0"),
        ("period", "must be one of: daily, monthly"),
        (
            "time_zone",
            "unknown time zone \"Mars/Olympus\": expected an IANA name such as Asia/Tokyo",
        ),
        ("enabled", "enabled must be a boolean, got a string"),
        ("alert_threshold_percent", "alert_threshold_percent must be between 0 and 100"),
    ];
    assert_eq!(errors(wrong), expected.map(|(field, message)| (field, message.to_owned())));
}

#[test]
fn numbers_have_bounds() {
    let with = |limit: i64| Draft { limit: limit.into(), ..draft() }.validate(None);
    assert!(with(1 << 53).is_ok());
    for limit in [(1 << 53) + 1, i64::MAX, -1, i64::MIN] {
        assert_eq!(with(limit).unwrap_err()[0].field, "limit", "{limit}");
    }
    let with =
        |percent: i64| Draft { alert_threshold_percent: percent.into(), ..draft() }.validate(None);
    assert_eq!(with(0).unwrap().alert_threshold_percent, Some(0));
    assert_eq!(with(100).unwrap().alert_threshold_percent, Some(100));
    assert!(with(-1).is_err() && with(256).is_err());
}

#[test]
fn missing_fields_are_kept_and_null_fields_removed() {
    let full = Draft {
        time_zone: "Asia/Tokyo".to_owned().into(),
        alert_threshold_percent: 80.into(),
        enabled: false.into(),
        ..draft()
    };
    let present = full.validate(None).unwrap();
    assert_eq!(draft().validate(Some(&present)).as_ref(), Ok(&present));
    let back = Draft { alert_threshold_percent: Input::Null, ..draft() };
    let back = back.validate(Some(&present)).unwrap();
    assert_eq!(back.alert_threshold_percent, None);
    assert_eq!(back.time_zone, present.time_zone);
}

#[test]
fn a_partial_update_needs_no_other_field() {
    let present = draft().validate(None).unwrap();
    let amended = Draft { limit: 5.into(), ..Draft::default() }.amend(&present).unwrap();
    assert_eq!(amended, QuotaSpec { limit: 5, ..present.clone() });
    let disabled = Draft { enabled: false.into(), ..Draft::default() }.amend(&present).unwrap();
    assert_eq!(disabled, QuotaSpec { enabled: false, ..present.clone() });
    let wrong = Draft { limit: 0.into(), ..Draft::default() }.amend(&present).unwrap_err();
    assert_eq!(wrong[0].message, "limit must be greater than 0");
    assert!(Draft { name: Input::Null, ..Draft::default() }.amend(&present).is_err());
}

#[test]
fn names_of_the_machines_zone_are_rejected() {
    for name in ["localtime", "posixrules", "posix/UTC", "/etc/localtime"] {
        let wrong = Draft { time_zone: name.to_owned().into(), ..draft() };
        let [(field, message)] = errors(wrong).try_into().unwrap();
        assert_eq!(field, "time_zone");
        assert!(message.contains("unknown time zone"), "{message}");
    }
}
