//! A minimal Markdown parser: links, headings, and code between backticks.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// A Markdown file, without its fenced blocks.
pub(super) struct Page {
    pub(super) path: PathBuf,
    text: String,
}

// === impl Page ===

impl Page {
    pub(super) fn read(root: &Path, path: PathBuf) -> Self {
        let text = fs::read_to_string(root.join(&path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut fenced = false;
        let lines = text.lines().filter(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        });
        let text = lines.flat_map(|line| [line, "\n"]).collect();
        Self { path, text }
    }

    /// The targets of `[text](target)`, `![text](target)` and `[name]: target`.
    pub(super) fn links(&self) -> Vec<&str> {
        let prose = self.text.split('`').step_by(2);
        let inline = self.text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let defined = prose.flat_map(str::lines).filter_map(|line| {
            let (name, target) = line.strip_prefix('[')?.split_once("]: ")?;
            (!name.contains(']')).then_some(target.trim())
        });
        let html = ["src=\"", "srcset=\"", "href=\""].into_iter().flat_map(|attribute| {
            self.text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
        });
        inline.chain(defined).chain(html).collect()
    }

    /// Anchors of the headings, as GitHub and mdBook name them.
    pub(super) fn anchors(&self) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        for line in self.text.lines().filter(|line| line.starts_with('#')) {
            let anchor = anchor(line.trim_start_matches('#').trim());
            let again = (1..).map(|number| format!("{anchor}-{number}"));
            let free = std::iter::once(anchor.clone()).chain(again);
            let free = free.into_iter().find(|anchor| !anchors.contains(anchor));
            anchors.extend(free);
        }
        anchors
    }

    /// Code between backticks, and the first word of indented lines, as in the map of the code.
    pub(super) fn code(&self) -> Vec<&str> {
        let spans = self.text.split('`').skip(1).step_by(2);
        let indented = self.text.lines().filter_map(|line| line.strip_prefix("    "));
        spans.chain(indented.filter_map(|line| line.split(' ').next())).collect()
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}
