//! Parses YAML, and therefore JSON, into a tree that records line numbers.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use thiserror::Error;

/// A value and the line it begins on.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Null,
    /// A scalar without quotes; its type depends on the field.
    Plain(String),
    Quoted(String),
    List(Vec<Node>),
    /// Each key with its line.
    Map(Vec<(String, usize, Node)>),
}

/// A syntax error and its position.
#[derive(Debug, Error)]
#[error("{line}:{column}: {message}")]
pub struct YamlError {
    line: usize,
    column: usize,
    message: String,
}

/// Deeper than any valid file.
const MAX_DEPTH: usize = 16;

struct TreeBuilder<'t>(Parser<'t, StrInput<'t>>);

/// Parses a single document; `None` if the text has none.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, YamlError> {
    TreeBuilder(Parser::new_from_str(text)).document().map_err(|error| YamlError {
        line: error.marker().line(),
        column: error.marker().col() + 1,
        message: error.info().to_owned(),
    })
}

// === impl Value ===

impl Value {
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Plain(_) | Self::Quoted(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

// === impl TreeBuilder ===

impl<'t> TreeBuilder<'t> {
    fn document(&mut self) -> Result<Option<Node>, ScanError> {
        let mut document = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(_) if document.is_some() => {
                    return Err(error(span, "expected a single YAML document"));
                }
                Event::DocumentStart(_) => document = self.value(0)?,
                _ => {}
            }
        }
        Ok(document)
    }

    fn value(&mut self, depth: usize) -> Result<Option<Node>, ScanError> {
        let Some((event, span)) = self.next()? else {
            return Ok(None);
        };
        if depth > MAX_DEPTH {
            return Err(error(span, "nested too deeply"));
        }
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if is_null(&text) => Value::Null,
            Event::Scalar(text, ScalarStyle::Plain, ..) => Value::Plain(text.into_owned()),
            Event::Scalar(text, ..) => Value::Quoted(text.into_owned()),
            Event::SequenceStart(..) => Value::List(self.list(depth)?),
            Event::MappingStart(..) => Value::Map(self.map(depth)?),
            _ => return Err(error(span, "anchors and aliases are not supported")),
        };
        Ok(Some(Node { line: span.start.line(), value }))
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, ScanError> {
        let mut items = Vec::new();
        while !matches!(self.0.peek(), Some(Ok((Event::SequenceEnd, _)))) {
            items.extend(self.value(depth + 1)?);
        }
        self.next()?;
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(String, usize, Node)>, ScanError> {
        let mut entries: Vec<(String, usize, Node)> = Vec::new();
        while let Some((event, span)) = self.next()? {
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(error(span, "expected a key")),
            };
            if entries.iter().any(|(other, ..)| *other == key) {
                return Err(error(span, &format!("duplicate key {key:?}")));
            }
            let value = self.value(depth + 1)?;
            entries.extend(value.map(|value| (key, span.start.line(), value)));
        }
        Ok(entries)
    }

    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, ScanError> {
        self.0.next().transpose()
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn error(span: Span, message: &str) -> ScanError {
    ScanError::new_str(span.start, message)
}
