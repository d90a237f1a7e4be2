//! YAML as a tree of texts.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::{
    problem::ConfigError,
    text_file,
    tree::{Node, Origin, Value},
};

/// Reads the file at `path`.
pub(crate) fn read(path: &Path) -> Result<Node, ConfigError> {
    parse(path, &text_of(path)?)
}

/// Reads the file at `path`, which must not be empty.
pub(crate) fn read_content(path: &Path) -> Result<Node, ConfigError> {
    let text = text_of(path)?;
    if text.trim().is_empty() {
        let message = "it is empty; if you mean the defaults, write {} into it";
        let cause = io::Error::new(ErrorKind::InvalidData, message);
        return Err(ConfigError::Unreadable { path: path.into(), cause });
    }
    parse(path, &text)
}

fn text_of(path: &Path) -> Result<String, ConfigError> {
    text_file::read(path).map_err(|cause| ConfigError::Unreadable { path: path.into(), cause })
}

/// Parses `text`, the contents of the file at `path`.
pub(crate) fn parse(path: &Path, text: &str) -> Result<Node, ConfigError> {
    let mut reader = YamlReader::new(path.into(), text);
    reader.document().map_err(|error| ConfigError::Yaml {
        path: path.into(),
        line: error.marker().line(),
        column: error.marker().col() + 1,
        message: error.info().to_owned(),
    })
}

/// Parses YAML from a variable; `None` if it is not YAML.
pub(crate) fn read_value(text: &str, origin: &Origin) -> Option<Node> {
    let place = PathBuf::from(origin.to_string());
    let mut reader = YamlReader::new(place.into(), text);
    reader.document().ok()
}

struct YamlReader<'t> {
    path: Arc<Path>,
    events: Parser<'t, StrInput<'t>>,
    depth: usize,
    /// Values of anchors, by their number.
    anchors: HashMap<usize, Anchored>,
    /// Size of everything that aliases have repeated, in bytes.
    repeated: usize,
}

/// The value of an anchor.
struct Anchored {
    node: Node,
    /// Size of a copy, in bytes.
    size: usize,
    /// Levels of nesting.
    depth: usize,
}

/// Bound on nesting, since parsing is recursive.
const MAX_DEPTH: usize = 64;

/// Bound on the size of repeated aliases: aliases of aliases grow exponentially.
const MAX_REPEATED: usize = 16 << 20;

/// Size of a value without its text.
const VALUE_BYTES: usize = 128;

/// The merge key: its value is merged into its section.
const MERGE: &str = "<<";

impl<'t> YamlReader<'t> {
    fn new(path: Arc<Path>, text: &'t str) -> Self {
        let events = Parser::new_from_str(text);
        Self { path, events, depth: 0, anchors: HashMap::new(), repeated: 0 }
    }

    /// Reads the only document; an empty file is an empty section.
    fn document(&mut self) -> Result<Node, ScanError> {
        let mut document = None;
        while let Some((event, span)) = self.next()? {
            match event {
                Event::DocumentStart(_) if document.is_some() => {
                    return Err(error(span, "expected one YAML document, found a second one"));
                }
                Event::DocumentStart(_) => document = Some(self.value()?),
                _ => {}
            }
        }
        Ok(document.filter(|document| !document.is_null()).unwrap_or_default())
    }

    fn value(&mut self) -> Result<Node, ScanError> {
        let Some((event, span)) = self.next()? else {
            return Ok(Node { value: Value::Null, ..Node::default() });
        };
        if self.depth == MAX_DEPTH {
            return Err(error(span, "nested too deeply"));
        }
        if let Event::Alias(anchor) = event {
            return Ok(Node { origin: self.origin(span), ..self.repeat(anchor, span)? });
        }
        self.depth += 1;
        let quoted = matches!(&event, Event::Scalar(_, style, ..) if *style != ScalarStyle::Plain);
        let (value, anchor) = match event {
            Event::Scalar(text, _, anchor, _) if !quoted && is_null(&text) => (Value::Null, anchor),
            Event::Scalar(text, _, anchor, _) => (Value::Text(text.into_owned()), anchor),
            Event::SequenceStart(anchor, _) => (Value::List(self.list()?), anchor),
            Event::MappingStart(anchor, _) => (Value::Map(self.section()?), anchor),
            _ => return Err(error(span, "expected a value")),
        };
        self.depth -= 1;
        let node = Node { value, origin: self.origin(span), quoted };
        // 0 is no anchor.
        if anchor > 0 {
            let (size, depth) = extent(&node);
            self.anchors.insert(anchor, Anchored { node: node.clone(), size, depth });
        }
        Ok(node)
    }

    /// Returns the value of the alias at `span`.
    fn repeat(&mut self, anchor: usize, span: Span) -> Result<Node, ScanError> {
        let Some(Anchored { node, size, depth }) = self.anchors.get(&anchor) else {
            return Err(error(span, "alias within its own anchor"));
        };
        self.repeated += size;
        if self.repeated > MAX_REPEATED {
            return Err(error(span, "aliases expand to too much data"));
        }
        if self.depth + depth > MAX_DEPTH {
            return Err(error(span, "nested too deeply"));
        }
        Ok(node.clone())
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
        let mut merged = Vec::new();
        while let Some((event, span)) = self.next()? {
            let key = match event {
                Event::MappingEnd => break,
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(error(span, "expected a key")),
            };
            // An error names the line of the key, not of the value.
            let origin = self.origin(span);
            let value = Node { origin, ..self.value()? };
            if key == MERGE {
                merged.extend(sections(value).ok_or_else(|| error(span, "expected a section"))?);
                continue;
            }
            if entries.contains_key(&key) {
                return Err(error(span, &format!("duplicate key {key:?}")));
            }
            // Null is kept here, because it is not known yet whether the key exists.
            entries.insert(key, value);
        }
        // The section itself wins, then the first section merged into it.
        for (key, value) in merged.into_iter().flatten() {
            entries.entry(key).or_insert(value);
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

/// Returns the sections that a merge key names: one, or a list.
fn sections(node: Node) -> Option<Vec<BTreeMap<String, Node>>> {
    let section = |node: Node| match node.value {
        Value::Map(entries) => Some(entries),
        _ => None,
    };
    match node.value {
        Value::List(items) => items.into_iter().map(section).collect(),
        _ => Some(vec![section(node)?]),
    }
}

/// Returns the size of a copy of `node`, in bytes, and its levels of nesting.
fn extent(node: &Node) -> (usize, usize) {
    let (own, below): (usize, Vec<(usize, usize)>) = match &node.value {
        Value::Null => (0, Vec::new()),
        Value::Text(text) => (text.len(), Vec::new()),
        Value::List(items) => (0, items.iter().map(extent).collect()),
        Value::Map(entries) => {
            (entries.keys().map(String::len).sum(), entries.values().map(extent).collect())
        }
    };
    let size = below.iter().map(|(size, _)| size).sum::<usize>();
    let depth = below.iter().map(|(_, depth)| *depth).max().unwrap_or(0);
    (VALUE_BYTES + own + size, depth + 1)
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn error(span: Span, message: &str) -> ScanError {
    ScanError::new_str(span.start, message)
}
