//! Limits by the value of an attribute, such as the plan of a tenant.

use serde_json::{Map, Value as Json};

use crate::Attributes;

/// The limits of a rule by the value of an attribute: `{"by": "plan", "free": 100, "default": 50}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLimits {
    by: Box<str>,
    /// Values of the attribute and their limits, in the order of the values.
    limits: Vec<(Box<str>, u32)>,
    default: Option<u32>,
}

/// A reason for machines, and a message.
pub(crate) type PlanProblem = (&'static str, String);

/// The field with the name of the attribute.
const BY: &str = "by";

/// The field with the limit of all other values.
const DEFAULT: &str = "default";

impl PlanLimits {
    /// Maximum number of values with a limit.
    pub const MAX: usize = 64;

    /// Maximum length of a value in bytes.
    pub const MAX_VALUE_BYTES: usize = 128;

    /// Returns the attribute whose value decides.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Returns the limits by value, without the default.
    pub fn limits(&self) -> impl ExactSizeIterator<Item = (&str, u32)> {
        self.limits.iter().map(|(value, limit)| (&**value, *limit))
    }

    /// Returns the limit of all other values, and of checks without the attribute.
    pub const fn default(&self) -> Option<u32> {
        self.default
    }

    /// Returns the limit of checks whose value has none: the default, or the lowest. It is never
    /// a limit that a caller gets by leaving out the attribute and would not get otherwise.
    pub fn fallback(&self) -> u32 {
        let lowest = self.limits.iter().map(|(_, limit)| *limit).min();
        self.default.or(lowest).unwrap_or(1)
    }

    /// Parses limits as they are written; returns all problems.
    pub(crate) fn parse(json: &Json) -> Result<Self, Vec<PlanProblem>> {
        let Json::Object(fields) = json else {
            return Err(vec![("wrong_type", "limit must be a number or an object".to_owned())]);
        };
        let mut problems = Vec::new();
        let by = match fields.get(BY).map(Json::as_str) {
            Some(Some(name)) if Attributes::is_name(name) => name.into(),
            None => {
                let message = "limit.by is required: the attribute whose value decides".to_owned();
                problems.push(("required", message));
                Box::default()
            }
            Some(_) => {
                problems.push(("invalid", "limit.by must be the name of an attribute".to_owned()));
                Box::default()
            }
        };
        let mut limits = Vec::with_capacity(fields.len());
        for (value, limit) in fields.iter().filter(|(name, _)| !matches!(&***name, BY | DEFAULT)) {
            if !(1..=Self::MAX_VALUE_BYTES).contains(&value.len()) {
                let max = Self::MAX_VALUE_BYTES;
                let message = format!("values of limit.by must have 1 to {max} bytes");
                problems.push(("length", message));
                continue;
            }
            match units(value, limit) {
                Ok(units) => limits.push((value.as_str().into(), units)),
                Err(problem) => problems.push(problem),
            }
        }
        let default = match fields.get(DEFAULT).map(|limit| units(DEFAULT, limit)) {
            None => None,
            Some(Ok(units)) => Some(units),
            Some(Err(problem)) => {
                problems.push(problem);
                None
            }
        };
        if limits.len() > Self::MAX {
            let message = format!("limit may have at most {} values", Self::MAX);
            problems.push(("too_many", message));
        }
        if limits.is_empty() && problems.is_empty() {
            let message = "limit needs at least one value of limit.by with its limit".to_owned();
            problems.push(("required", message));
        }
        limits.sort();
        if problems.is_empty() { Ok(Self { by, limits, default }) } else { Err(problems) }
    }

    /// Returns the limits as they are written.
    pub fn to_json(&self) -> Json {
        let mut fields = Map::new();
        fields.insert(BY.to_owned(), self.by().into());
        fields.extend(self.limits().map(|(value, limit)| (value.to_owned(), limit.into())));
        fields.extend(self.default.map(|limit| (DEFAULT.to_owned(), limit.into())));
        Json::Object(fields)
    }
}

fn units(value: &str, limit: &Json) -> Result<u32, PlanProblem> {
    let invalid = |reason, must: &str| (reason, format!("limit.{value} must be {must}"));
    match (limit.as_i64(), limit.as_u64()) {
        (Some(number), _) if number <= 0 => Err(invalid("must_be_positive", "greater than 0")),
        (_, Some(number)) => u32::try_from(number)
            .map_err(|_| invalid("too_large", &format!("at most {}", u32::MAX))),
        _ => Err(invalid("wrong_type", "a whole number")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_parsed_and_written() {
        let json = json!({"by": "plan", "pro": 1000, "free": 100, "default": 50});
        let limits = PlanLimits::parse(&json).unwrap();
        assert_eq!(limits.limits().collect::<Vec<_>>(), [("free", 100), ("pro", 1000)]);
        assert_eq!((limits.by(), limits.default(), limits.fallback()), ("plan", Some(50), 50));
        assert_eq!(limits.to_json(), json);
        let without = PlanLimits::parse(&json!({"by": "plan", "pro": 9, "free": 2})).unwrap();
        assert_eq!((without.default(), without.fallback()), (None, 2));
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let many: Map<String, Json> = (0..65).map(|i| (format!("p{i}"), json!(1))).collect();
        let cases = [
            (json!([1]), "limit must be a number or an object"),
            (json!({}), "limit.by is required: the attribute whose value decides"),
            (json!({"by": "plan"}), "limit needs at least one value of limit.by with its limit"),
            (
                json!({"by": "a b", "x": 0, "y": -1, "z": 1.5, "default": "a", "": 1}),
                "limit.by must be the name of an attribute; values of limit.by must have 1 to 128 bytes; \
              limit.x must be greater than 0; limit.y must be greater than 0; limit.z must be a whole \
              number; limit.default must be a whole number",
            ),
            (json!({"by": "plan", "x": 4_294_967_296_u64}), "limit.x must be at most 4294967295"),
        ];
        for (json, expected) in cases {
            let problems = PlanLimits::parse(&json).unwrap_err();
            let messages: Vec<String> = problems.into_iter().map(|(_, message)| message).collect();
            assert_eq!(messages.join("; "), expected);
        }
        let mut many = Json::Object(many);
        many["by"] = json!("plan");
        assert_eq!(PlanLimits::parse(&many).unwrap_err()[0].0, "too_many");
    }
}
