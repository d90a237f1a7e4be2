//! The rules of a list, as they are sent.

use std::fmt;

use headgate_ratelimit::usecase::RuleList;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::wire::WireDraft;
use crate::rest::{
    error::{ApiError, Detail},
    json_body::{MAX_BODY_BYTES, parse_part},
};

/// The text of a list of rules. Its items are parsed one at a time, since a parsed rule may take a
/// hundred times the memory of its text.
#[derive(Debug)]
pub(super) struct WireItems<'a>(&'a str);

/// Maximum number of problems with the form of rules before the rest is skipped.
const MAX_PROBLEMS: usize = 20;

/// Adds rules to a list.
struct Items<'l> {
    list: &'l mut RuleList,
    max: u64,
    problems: Vec<Detail>,
}

impl<'de: 'a, 'a> Deserialize<'de> for WireItems<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if !text.starts_with('[') {
            return Err(D::Error::custom("rules must be a list"));
        }
        Ok(Self(text))
    }
}

impl WireItems<'_> {
    /// Adds the rules to `list`; refuses more than `max`.
    pub(super) fn add_to(&self, list: &mut RuleList, max: u64) -> Result<(), ApiError> {
        let mut json = serde_json::Deserializer::from_str(self.0);
        let items = Items { list, max, problems: Vec::new() };
        let problems = json.deserialize_seq(items);
        let problems = problems.map_err(|error| ApiError::BadBody(error.to_string()))?;
        if problems.is_empty() { Ok(()) } else { Err(ApiError::Invalid(problems)) }
    }
}

impl Items<'_> {
    fn add(&mut self, index: u64, text: &str) {
        let place = format!("rules[{index}]");
        if text.len() > MAX_BODY_BYTES {
            let message = format!("a rule must be at most {MAX_BODY_BYTES} bytes");
            self.problems.push(Detail::at(place, "length", message));
        } else if !text.starts_with('{') {
            // Serde would accept a list as an object without keys.
            self.problems.push(Detail::at(place, "wrong_type", "a rule must be an object".into()));
        } else {
            match parse_part::<WireDraft<'_>>(place, text) {
                Ok(draft) => self.list.add(draft.into()),
                Err(problems) => self.problems.extend(problems),
            }
        }
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = Vec<Detail>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rules")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut index = 0;
        while let Some(item) = items.next_element::<&RawValue>()? {
            if index < self.max && self.problems.len() < MAX_PROBLEMS {
                self.add(index, item.get());
            }
            index += 1;
        }
        if index > self.max {
            let max = self.max;
            let message = format!("rules must have at most {max} items (ratelimit.max_rules)");
            self.problems.insert(0, Detail::new("rules", "length", message));
        }
        Ok(self.problems)
    }
}
