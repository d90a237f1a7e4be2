use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

/// A claim of a token in JWS compact form: a text or a whole number. The signature is not verified.
pub(super) fn of_token(token: &[u8], name: &str) -> Option<String> {
    let mut parts = token.split(|byte| *byte == b'.');
    let [_header, payload, _signature] = [parts.next()?, parts.next()?, parts.next()?];
    if parts.next().is_some() {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let mut claims: Map<String, Value> = serde_json::from_slice(&payload).ok()?;
    match claims.remove(name)? {
        Value::String(text) => Some(text),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(payload: &str) -> Option<String> {
        of_token(format!("e30.{}.", URL_SAFE_NO_PAD.encode(payload)).as_bytes(), "sub")
    }

    #[test]
    fn texts_and_whole_numbers_are_claims() {
        assert_eq!(claim(r#"{"iss":"me","sub":"alice"}"#).as_deref(), Some("alice"));
        assert_eq!(claim(r#"{"sub":42}"#).as_deref(), Some("42"));
        for payload in
            [r#"{"iss":"me"}"#, r#"{"sub":null}"#, r#"{"sub":1.5}"#, r#"{"sub":["a"]}"#, "{", "[]"]
        {
            assert_eq!(claim(payload), None, "{payload}");
        }
    }

    #[test]
    fn only_three_parts_are_a_token() {
        for token in ["", "e30", "e30.e30", "e30.e30.x.y", "e30.%%%.x"] {
            assert_eq!(of_token(token.as_bytes(), "sub"), None, "{token}");
        }
    }
}
