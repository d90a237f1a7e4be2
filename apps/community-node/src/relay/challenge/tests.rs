use nostr::{
    event::{EventBuilder, FinalizeEvent as _, Tag},
    types::Timestamp,
};

use super::*;
use crate::relay::samples::{NOW, keys};

const URL: &str = "ws://127.0.0.1:7000/relay";

fn signed(kind: u16, challenge: &str, relay: &str, at: Second) -> String {
    let tags = [["challenge", challenge], ["relay", relay]].map(|tag| Tag::parse(tag).unwrap());
    let builder = EventBuilder::new(Kind::from(kind), "").tags(tags);
    builder.custom_created_at(Timestamp::from_secs(at)).finalize(&keys(1)).unwrap().as_json()
}

fn verify(challenge: &Challenge, json: &str) -> Result<PublicKey, AuthError> {
    challenge.verify(json, &RelayUrl::parse(URL).unwrap(), NOW)
}

#[test]
fn a_signed_challenge_proves_the_public_key() {
    let challenge = Challenge::random();
    let json = signed(22_242, challenge.as_str(), URL, NOW);
    assert_eq!(verify(&challenge, &json), Ok(keys(1).public_key()));
    assert_ne!(challenge, Challenge::random());
    assert_eq!(challenge.as_str().len(), 32);
}

#[test]
fn a_signature_for_another_challenge_or_relay_is_refused() {
    let challenge = Challenge::random();
    let text = challenge.as_str();
    let cases = [
        (signed(22_242, "other", URL, NOW), AuthError::Elsewhere),
        (signed(22_242, text, "ws://example.com/relay", NOW), AuthError::Elsewhere),
        (signed(1, text, URL, NOW), AuthError::Malformed),
        (signed(22_242, text, URL, NOW - 601), AuthError::Stale),
        (signed(22_242, text, URL, NOW + 601), AuthError::Stale),
        (
            signed(22_242, text, URL, NOW).replace("\"content\":\"\"", "\"content\":\"x\""),
            AuthError::Forged,
        ),
        ("{}".to_owned(), AuthError::Malformed),
        (format!("{{\"pad\":\"{}\"}}", "x".repeat(5_000)), AuthError::Malformed),
    ];
    for (json, error) in cases {
        assert_eq!(verify(&challenge, &json), Err(error), "{json}");
    }
    assert!(verify(&challenge, &signed(22_242, text, URL, NOW - 600)).is_ok());
}

#[test]
fn without_randomness_no_signature_is_accepted() {
    let none = Challenge(String::new());
    assert_eq!(verify(&none, &signed(22_242, "", URL, NOW)), Err(AuthError::Elsewhere));
}
