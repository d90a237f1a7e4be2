//! The configuration file, as a tree of texts.

use std::{
    collections::{BTreeMap, HashMap},
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
    /// What each anchor stands for, by its number.
    anchors: HashMap<usize, Anchored>,
    /// What aliases have added, in bytes.
    repeated: usize,
}

/// A value that aliases can repeat.
struct Anchored {
    node: Node,
    /// What a copy of it takes, in bytes.
    size: usize,
    /// How deeply they are nested.
    depth: usize,
}

/// Deeper than anything that is configured: reading goes as deep as the text does.
const MAX_DEPTH: usize = 64;

/// More bytes than any file repeats: aliases of aliases would grow without end.
const MAX_REPEATED: usize = 16 << 20;

/// What a value takes beside its text.
const VALUE_BYTES: usize = 128;

/// The key whose value is merged into the section that it stands in.
const MERGE: &str = "<<";

impl<'t> Reader<'t> {
    fn new(path: Arc<Path>, text: &'t str) -> Self {
        let events = Parser::new_from_str(text);
        Self { path, events, depth: 0, anchors: HashMap::new(), repeated: 0 }
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
            return Ok(Node { value: Value::Null, ..Node::default() });
        };
        if self.depth == MAX_DEPTH {
            return Err(wrong(span, "nested too deeply"));
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
            _ => return Err(wrong(span, "expected a value")),
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

    /// What the alias at `span` stands for.
    fn repeat(&mut self, anchor: usize, span: Span) -> Result<Node, ScanError> {
        let Some(Anchored { node, size, depth }) = self.anchors.get(&anchor) else {
            return Err(wrong(span, "the alias stands within what it repeats"));
        };
        self.repeated += size;
        if self.repeated > MAX_REPEATED {
            return Err(wrong(span, "aliases repeat too much: write some of it out"));
        }
        if self.depth + depth > MAX_DEPTH {
            return Err(wrong(span, "nested too deeply"));
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
                _ => return Err(wrong(span, "expected a key")),
            };
            // Where the key stands is where people look for the value.
            let origin = self.origin(span);
            let value = Node { origin, ..self.value()? };
            if key == MERGE {
                merged.extend(sections(value).ok_or_else(|| wrong(span, "expected a section"))?);
                continue;
            }
            if entries.contains_key(&key) {
                return Err(wrong(span, &format!("{key:?} stands here twice")));
            }
            // Also null: whether there is such a key is not known yet.
            entries.insert(key, value);
        }
        // What the section says itself goes first, then the first section that was merged into it.
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

/// The sections that a merge key names: one, or a list of them.
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

/// What a copy of a node takes, in bytes, and how deeply it is nested.
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

fn wrong(span: Span, message: &str) -> ScanError {
    ScanError::new_str(span.start, message)
}
