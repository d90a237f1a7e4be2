//! Reads YAML, and therefore JSON, as a tree that knows its lines.

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
    /// A text without quotes: what it means depends on who wants it.
    Plain(String),
    Quoted(String),
    List(Vec<Node>),
    /// Each key with its line.
    Map(Vec<(String, usize, Node)>),
}

/// Where a text stops being YAML.
#[derive(Debug, Error)]
#[error("{line}:{column}: {message}")]
pub(crate) struct NotYaml {
    line: usize,
    column: usize,
    message: String,
}

/// Deeper than anything that is read here.
const MAX_DEPTH: usize = 16;

struct Reader<'t>(Parser<'t, StrInput<'t>>);

/// Reads the only document there is; `None` if there is none.
pub(crate) fn read(text: &str) -> Result<Option<Node>, NotYaml> {
    Reader(Parser::new_from_str(text)).document().map_err(|error| NotYaml {
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
            Self::Plain(_) | Self::Quoted(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a section",
        }
    }
}

// === impl Reader ===

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<Option<Node>, ScanError> {
        let mut document = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(_) if document.is_some() => {
                    return Err(wrong(span, "expected one YAML document, found another"));
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
            return Err(wrong(span, "nested too deeply"));
        }
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if is_null(&text) => Value::Null,
            Event::Scalar(text, ScalarStyle::Plain, ..) => Value::Plain(text.into_owned()),
            Event::Scalar(text, ..) => Value::Quoted(text.into_owned()),
            Event::SequenceStart(..) => Value::List(self.list(depth)?),
            Event::MappingStart(..) => Value::Map(self.map(depth)?),
            _ => return Err(wrong(span, "anchors and aliases are not understood here")),
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
                _ => return Err(wrong(span, "expected a key")),
            };
            if entries.iter().any(|(other, ..)| *other == key) {
                return Err(wrong(span, &format!("{key:?} stands here twice")));
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

fn wrong(span: Span, message: &str) -> ScanError {
    ScanError::new_str(span.start, message)
}
