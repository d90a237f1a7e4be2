//! Text in columns.

use std::io::{self, Write};

const GAP: &str = "  ";
/// Minimum width of names, so that the output of different commands lines up.
const MIN_NAME_CHARS: usize = 11;

/// Rows under a heading.
pub(crate) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[String; N]>,
}

/// A heading and the alignment of its cells: left for text, right for numbers.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    Text(&'static str),
    Number(&'static str),
}

/// Writes one name and value per line.
pub(crate) fn write_fields(out: &mut dyn Write, fields: &[(&str, String)]) -> io::Result<()> {
    let longest = fields.iter().map(|(name, _)| chars(name)).max().unwrap_or_default();
    let width = longest.max(MIN_NAME_CHARS);
    for (name, value) in fields {
        writeln!(out, "{name:width$}{GAP}{}", escape_control(value))?;
    }
    Ok(())
}

// === impl Table ===

impl<const N: usize> Table<N> {
    pub(crate) const fn new(columns: [Column; N]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| escape_control(&cell)));
    }

    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let headings = self.columns.map(|column| column.heading().to_owned());
        let lines: Vec<&[String; N]> = [&headings].into_iter().chain(&self.rows).collect();
        let width = |i: usize| lines.iter().map(|cells| chars(&cells[i])).max().unwrap_or_default();
        let widths: [usize; N] = std::array::from_fn(width);
        for cells in lines {
            let mut line = String::new();
            for ((cell, column), width) in cells.iter().zip(self.columns).zip(widths) {
                line.push_str(&column.aligned(cell, width));
                line.push_str(GAP);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

// === impl Column ===

impl Column {
    const fn heading(self) -> &'static str {
        match self {
            Self::Text(heading) | Self::Number(heading) => heading,
        }
    }

    fn aligned(self, cell: &str, width: usize) -> String {
        match self {
            Self::Text(_) => format!("{cell:width$}"),
            Self::Number(_) => format!("{cell:>width$}"),
        }
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Escapes control characters: text from elsewhere must not move the cursor or break lines.
fn escape_control(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table =
            Table::new([Column::Text("NAME"), Column::Number("LIMIT"), Column::Text("WHY")]);
        table.row(["é".to_owned(), "7".to_owned(), String::new()]);
        table.row(["a\u{1b}[2Jb".to_owned(), "1000000".to_owned(), "x\ny".to_owned()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let expected = "NAME           LIMIT  WHY\n\
                        é                  7\n\
                        a\\u{1b}[2Jb  1000000  x\\ny\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_are_aligned() {
        let mut out = Vec::new();
        write_fields(&mut out, &[("id", "1".to_owned()), ("a rather long one", "2".to_owned())])
            .unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "id                 1\na rather long one  2\n");
    }
}
