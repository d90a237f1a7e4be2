//! The configuration file, as a tree of texts.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::{
    problem::ConfigError,
    tree::{Node, Origin, Value},
};

/// Reads the file at `path`.
pub(super) fn read(path: &Path) -> Result<Node, ConfigError> {
    let text = fs::read_to_string(path)
        .map_err(|cause| ConfigError::Unreadable { path: path.into(), cause })?;
    parse(path, &text)
}

/// Reads `text`, which stands in the file at `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Node, ConfigError> {
    let mut reader = Reader::new(path.into(), text);
    reader.document().map_err(|error| ConfigError::Yaml {
        path: path.into(),
        line: error.marker().line(),
        column: error.marker().col() + 1,
        message: error.info().to_owned(),
    })
}

/// Reads YAML that does not stand in a file; `None` if it is not YAML, or nothing.
pub(super) fn read_value(text: &str, origin: &Origin) -> Option<Node> {
    let place = PathBuf::from(origin.to_string());
    let mut reader = Reader::new(place.into(), text);
    reader.document().ok()
}

struct Reader<'t> {
    path: Arc<Path>,
    events: Parser<'t, StrInput<'t>>,
    depth: usize,
}

/// Deeper than anything that is configured: reading goes as deep as the text does.
const MAX_DEPTH: usize = 64;

impl<'t> Reader<'t> {
    fn new(path: Arc<Path>, text: &'t str) -> Self {
        Self { path, events: Parser::new_from_str(text), depth: 0 }
    }

    /// The only document there is; an empty file is an empty one.
    fn document(&mut self) -> Result<Node, ScanError> {
        let mut document = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(_) if document.is_some() => {
                    return Err(wrong(span, "expected one YAML document, found another"));
                }
                Event::DocumentStart(_) => document = Some(self.value()?),
                _ => {}
            }
        }
        Ok(document.filter(|document| !document.is_null()).unwrap_or_default())
    }

    fn value(&mut self) -> Result<Node, ScanError> {
        let Some((event, span)) = self.next()? else {
            return Ok(Node { value: Value::Null, origin: Origin::Default });
        };
        if self.depth == MAX_DEPTH {
            return Err(wrong(span, "nested too deeply"));
        }
        self.depth += 1;
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if is_null(&text) => Value::Null,
            Event::Scalar(text, ..) => Value::Text(text.into_owned()),
            Event::SequenceStart(..) => Value::List(self.list()?),
            Event::MappingStart(..) => Value::Map(self.section()?),
            _ => return Err(wrong(span, "anchors and aliases are not understood here")),
        };
        self.depth -= 1;
        Ok(Node { value, origin: self.origin(span) })
    }

    fn list(&mut self) -> Result<Vec<Node>, ScanError> {
        let mut items = Vec::new();
        while !matches!(self.events.peek(), Some(Ok((Event::SequenceEnd, _)))) {
            items.extend(Some(self.value()?).filter(|item| !item.is_null()));
        }
        self.next()?;
        Ok(items)
    }

    fn section(&mut self) -> Result<BTreeMap<String, Node>, ScanError> {
        let mut entries = BTreeMap::new();
        while let Some((event, span)) = self.next()? {
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(wrong(span, "expected a key")),
            };
            // Where the key stands is where people look for the value.
            let origin = self.origin(span);
            let value = Node { origin, ..self.value()? };
            if entries.contains_key(&key) {
                return Err(wrong(span, &format!("{key:?} stands here twice")));
            }
            // Also null: whether there is such a key is not known yet.
            entries.insert(key, value);
        }
        Ok(entries)
    }

    fn next(&mut self) -> Result<Option<(Event<'t>, Span)>, ScanError> {
        self.events.next().transpose()
    }

    fn origin(&self, span: Span) -> Origin {
        Origin::File { path: Arc::clone(&self.path), line: span.start.line() }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn wrong(span: Span, message: &str) -> ScanError {
    ScanError::new_str(span.start, message)
}
