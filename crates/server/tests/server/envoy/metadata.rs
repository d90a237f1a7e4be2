//! Dynamic metadata.

use prost_types::{Struct, Value, value::Kind};

use super::{
    client::{Answer, Client, allowing, of, request, taking},
    start,
};

/// Converts a value to JSON.
fn json(value: &Value) -> serde_json::Value {
    match value.kind.as_ref().unwrap() {
        Kind::NullValue(_) => serde_json::Value::Null,
        Kind::NumberValue(number) => (*number).into(),
        Kind::StringValue(text) => text.as_str().into(),
        Kind::BoolValue(value) => (*value).into(),
        Kind::StructValue(section) => json_of(section),
        Kind::ListValue(list) => list.values.iter().map(json).collect(),
    }
}

fn json_of(section: &Struct) -> serde_json::Value {
    section.fields.iter().map(|(key, value)| (key.clone(), json(value))).collect()
}

fn metadata(answer: &Answer) -> serde_json::Value {
    json_of(answer.0.dynamic_metadata.as_ref().expect("metadata"))
}

#[tokio::test]
async fn dynamic_metadata_has_the_request_limits_with_room_and_denials() {
    let server = start(&[("envoy.dynamic_metadata", "true")]).await;
    let client = Client::connect(server.grpc_address).await;
    let both = [of(&[("service", "fast")]), of(&[("service", "slow")])];
    let descriptors = serde_json::json!([
        {"entries": ["service=fast"]},
        {"entries": ["service=slow"]},
    ]);

    // On conflict the first one wins; sections are merged.
    let expected = serde_json::json!({
        "domain": "services",
        "descriptors": descriptors,
        "hitsAddend": 1.0,
        "metadata": {"service": {"name": "fast", "weight": 2.0, "zone": "7"}, "first": true},
    });
    let mut one = request("services", &both);
    one.hits_addend = 1;
    assert_eq!(metadata(&client.send(one).await), expected);

    let expected = serde_json::json!({
        "domain": "services",
        "descriptors": descriptors,
        "metadata": {"service": {"name": "slow", "zone": "7"}},
        "denied": [{"descriptor": 0.0, "rule": "service_fast", "name": "fast"}],
    });
    assert_eq!(metadata(&client.ask("services", &both).await), expected);

    let answer = client.ask("services", &both).await;
    assert!(answer.is_over());
    let expected = serde_json::json!({
        "domain": "services",
        "descriptors": descriptors,
        "denied": [
            {"descriptor": 0.0, "rule": "service_fast", "name": "fast"},
            {"descriptor": 1.0, "rule": "service_slow"},
        ],
    });
    assert_eq!(metadata(&answer), expected);

    let own = [allowing(2, &[("a", "b"), ("c", "")]), taking(3, &[("d", "e")])];
    let expected = serde_json::json!({
        "domain": "services",
        "descriptors": [
            {"entries": ["a=b", "c="], "limit": "requests_per_unit:2 unit:YEAR"},
            {"entries": ["d=e"], "hitsAddend": 3.0},
        ],
    });
    assert_eq!(metadata(&client.ask("services", &own).await), expected);
}

#[tokio::test]
async fn dynamic_metadata_is_off_by_default() {
    let server = start(&[]).await;
    let client = Client::connect(server.grpc_address).await;
    let answer = client.ask("services", &[of(&[("service", "fast")])]).await;
    assert!(answer.0.dynamic_metadata.is_none());
}
