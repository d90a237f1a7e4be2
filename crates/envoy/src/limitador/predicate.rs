//! Expressions as tests of entries, all of which must hold.

use super::expression::{Comparison, EntryName, Expression};

/// A test of the value of one entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EntryTest {
    pub(super) entry: EntryName,
    pub(super) test: ValueTest,
}

/// What a value must fulfil. None of them holds for an entry that is missing, but `Absent`: a
/// condition of limitador on a missing entry does not hold, negated or not.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueTest {
    /// It matches one of these.
    OneOf(Vec<TextPattern>),
    /// It matches none of these.
    NoneOf(Vec<TextPattern>),
    AtLeast(i64),
    AtMost(i64),
    Present,
    Absent,
}

/// A set of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextPattern {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
    /// Texts in which a regular expression is found.
    Found(String),
}

/// Converts an expression; the error says what has no counterpart in a rule.
pub(super) fn tests(expression: Expression) -> Result<Vec<EntryTest>, String> {
    match expression {
        Expression::Boolean(true) => Ok(Vec::new()),
        Expression::Boolean(false) => {
            Err("it never holds, so the limit applies to no request: remove the limit".to_owned())
        }
        Expression::All(both) => {
            let [left, right] = *both;
            Ok([tests(left)?, tests(right)?].concat())
        }
        Expression::Any(both) => {
            let [left, right] = *both;
            either(&tests(left)?, &tests(right)?)
        }
        Expression::Not(inner) => negated(*inner),
        Expression::Compare(comparison, sides) => Ok(vec![compared(comparison, *sides)?]),
        Expression::Call(function, arguments) => Ok(vec![called(&function, arguments)?]),
        other => Err(format!("{} is not a condition", described(&other))),
    }
}

/// Moves a negation inwards.
fn negated(expression: Expression) -> Result<Vec<EntryTest>, String> {
    match expression {
        Expression::Not(inner) => tests(*inner),
        Expression::Boolean(value) => tests(Expression::Boolean(!value)),
        Expression::Any(both) => {
            let [left, right] = *both;
            Ok([negated(left)?, negated(right)?].concat())
        }
        Expression::All(both) => {
            let [left, right] = *both;
            either(&negated(left)?, &negated(right)?)
        }
        Expression::Compare(comparison, sides) => match comparison.negated() {
            Some(comparison) => Ok(vec![compared(comparison, *sides)?]),
            None => opposite(compared(comparison, *sides)?),
        },
        other => {
            let [test] = <[EntryTest; 1]>::try_from(tests(other)?)
                .map_err(|_| "its negation has no counterpart".to_owned())?;
            opposite(test)
        }
    }
}

fn opposite(EntryTest { entry, test }: EntryTest) -> Result<Vec<EntryTest>, String> {
    let test = match test {
        ValueTest::OneOf(patterns) => ValueTest::NoneOf(patterns),
        ValueTest::NoneOf(patterns) => ValueTest::OneOf(patterns),
        ValueTest::Present => ValueTest::Absent,
        ValueTest::Absent => ValueTest::Present,
        ValueTest::AtLeast(number) => {
            ValueTest::AtMost(number.checked_sub(1).ok_or_else(out_of_range)?)
        }
        ValueTest::AtMost(number) => {
            ValueTest::AtLeast(number.checked_add(1).ok_or_else(out_of_range)?)
        }
    };
    Ok(vec![EntryTest { entry, test }])
}

/// Alternatives on the text of one entry are one test. Others would need a rule each, and rules do
/// not share their counters.
fn either(left: &[EntryTest], right: &[EntryTest]) -> Result<Vec<EntryTest>, String> {
    match (left, right) {
        (
            [EntryTest { entry, test: ValueTest::OneOf(one) }],
            [EntryTest { entry: other, test: ValueTest::OneOf(two) }],
        ) if entry == other => {
            let test = ValueTest::OneOf([&one[..], two].concat());
            Ok(vec![EntryTest { entry: entry.clone(), test }])
        }
        _ => Err("|| is supported between tests of the text of one entry only: alternatives on \
                  several entries would need several rules, which do not share a counter"
            .to_owned()),
    }
}

fn compared(comparison: Comparison, [left, right]: [Expression; 2]) -> Result<EntryTest, String> {
    use Expression::{Call, Descriptor, Entry, Integer, List, Text};

    match (comparison, left, right) {
        (Comparison::In, Entry(_), List(items)) if items.is_empty() => {
            Err("no value is in an empty list: remove the limit".to_owned())
        }
        (Comparison::In, Entry(entry), List(items)) => {
            let exact = items.into_iter().map(|item| match item {
                Text(text) => Ok(TextPattern::Exact(text)),
                other => Err(format!("{} in a list is not a string", described(&other))),
            });
            Ok(EntryTest { entry, test: ValueTest::OneOf(exact.collect::<Result<_, _>>()?) })
        }
        (Comparison::In, Text(key), Descriptor(index)) => {
            let entry = EntryName { descriptor: Some(index), key };
            Ok(EntryTest { entry, test: ValueTest::Present })
        }
        (Comparison::In, ..) => {
            Err("in is supported between an entry and a list of strings only".to_owned())
        }
        (comparison, Entry(entry), Text(text)) => equality(comparison, entry, text),
        // Before CEL, values had no quotes.
        (comparison, Entry(entry), Entry(EntryName { descriptor: None, key: text })) => {
            equality(comparison, entry, text)
        }
        (comparison, Entry(entry), Integer(number)) if entry.descriptor.is_none() => {
            equality(comparison, entry, number.to_string())
        }
        (_, Entry(_), Integer(_)) => Err("a text is never equal to a number: write the number in \
                                          quotes, or int(...) around the entry"
            .to_owned()),
        (comparison, Call(function, arguments), Integer(number)) if function == "int" => {
            numeric(comparison, &arguments, number)
        }
        (comparison, left @ (Text(_) | Integer(_)), right @ (Entry(_) | Call(..))) => {
            compared(comparison.flipped(), [right, left])
        }
        (_, left, right) => Err(format!(
            "{} cannot be compared with {} in a rule",
            described(&left),
            described(&right)
        )),
    }
}

fn equality(comparison: Comparison, entry: EntryName, value: String) -> Result<EntryTest, String> {
    let exact = vec![TextPattern::Exact(value)];
    let test = match comparison {
        Comparison::Equal => ValueTest::OneOf(exact),
        Comparison::NotEqual => ValueTest::NoneOf(exact),
        _ => return Err("texts are only compared with == and !=, not by their order".to_owned()),
    };
    Ok(EntryTest { entry, test })
}

fn numeric(
    comparison: Comparison,
    arguments: &[Expression],
    number: i64,
) -> Result<EntryTest, String> {
    let [Expression::Entry(entry)] = arguments else {
        return Err("int() is supported around an entry only".to_owned());
    };
    let test = match comparison {
        Comparison::GreaterOrEqual => ValueTest::AtLeast(number),
        Comparison::Greater => ValueTest::AtLeast(number.checked_add(1).ok_or_else(out_of_range)?),
        Comparison::LessOrEqual => ValueTest::AtMost(number),
        Comparison::Less => ValueTest::AtMost(number.checked_sub(1).ok_or_else(out_of_range)?),
        _ => return Err("numbers are only compared by their order; compare texts".to_owned()),
    };
    Ok(EntryTest { entry: entry.clone(), test })
}

fn called(function: &str, arguments: Vec<Expression>) -> Result<EntryTest, String> {
    let mut arguments = arguments.into_iter();
    let test = match (function, arguments.next(), arguments.next(), arguments.next()) {
        ("has", Some(Expression::Entry(entry)), None, None) => {
            return Ok(EntryTest { entry, test: ValueTest::Present });
        }
        (_, Some(Expression::Entry(entry)), Some(Expression::Text(text)), None) => {
            let pattern = match function {
                "startsWith" => TextPattern::Prefix(text),
                "endsWith" => TextPattern::Suffix(text),
                "contains" => TextPattern::Contains(text),
                "matches" => TextPattern::Found(text),
                _ => return Err(format!("{function}() has no counterpart in a rule")),
            };
            EntryTest { entry, test: ValueTest::OneOf(vec![pattern]) }
        }
        ("has" | "startsWith" | "endsWith" | "contains" | "matches", ..) => {
            return Err(format!("{function}() is supported on an entry with a string only"));
        }
        _ => return Err(format!("{function}() has no counterpart in a rule")),
    };
    Ok(test)
}

fn described(expression: &Expression) -> String {
    match expression {
        Expression::Text(_) => "a string".to_owned(),
        Expression::Integer(_) => "a number".to_owned(),
        Expression::Boolean(_) => "a boolean".to_owned(),
        Expression::List(_) => "a list".to_owned(),
        Expression::Entry(_) => "an entry".to_owned(),
        Expression::Descriptor(_) => "a descriptor".to_owned(),
        Expression::Call(function, _) => format!("{function}()"),
        Expression::Not(_) | Expression::All(_) | Expression::Any(_) | Expression::Compare(..) => {
            "a condition".to_owned()
        }
    }
}

fn out_of_range() -> String {
    "a number is out of range".to_owned()
}
