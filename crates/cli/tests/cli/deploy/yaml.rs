//! Converts YAML documents to JSON values.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};
use serde_json::{Map, Value};

pub(super) fn documents(text: &str) -> Vec<Value> {
    let mut parser = Parser::new_from_str(text);
    let mut documents = Vec::new();
    while let Some(event) = next(&mut parser) {
        if matches!(event, Event::DocumentStart(_)) {
            let event = next(&mut parser).expect("a document");
            documents.push(value(&mut parser, event));
        }
    }
    documents.retain(|document| !document.is_null());
    documents
}

/// The only document.
pub(super) fn document(text: &str) -> Value {
    let mut documents = documents(text);
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

fn next<'t>(parser: &mut Parser<'t, StrInput<'t>>) -> Option<Event<'t>> {
    parser.next().map(|event| event.expect("YAML").0)
}

fn value<'t>(parser: &mut Parser<'t, StrInput<'t>>, event: Event<'t>) -> Value {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text),
        Event::Scalar(text, ..) => Value::String(text.into_owned()),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match next(parser).expect("the end of a list") {
                    Event::SequenceEnd => return Value::Array(items),
                    item => items.push(value(parser, item)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut entries = Map::new();
            loop {
                let key = match next(parser).expect("the end of a map") {
                    Event::MappingEnd => return Value::Object(entries),
                    Event::Scalar(key, ..) => key.into_owned(),
                    other => panic!("{other:?}"),
                };
                let event = next(parser).expect("a value");
                let before = entries.insert(key.clone(), value(parser, event));
                assert_eq!(before, None, "duplicate key {key}");
            }
        }
        other => panic!("{other:?}"),
    }
}

/// A scalar without quotes: number, boolean, null or string.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => text.parse::<i64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
    }
}
