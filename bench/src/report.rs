//! Formatting of results: ratios with their spread, tables, and bounds kept or missed.

use std::fmt;

/// Ratio of two figures, for each round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    min: f64,
    max: f64,
}

/// A Markdown table.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

/// A bound, and its result.
#[derive(Debug)]
pub(crate) struct Verdict {
    bound: String,
    figure: String,
    holds: bool,
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}

// === impl Ratio ===

impl Ratio {
    /// The median of the rounds' ratios: noise that affects a whole round cancels out.
    pub(crate) fn per_round(over: &[f64], under: &[f64]) -> Self {
        let ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
        Self {
            median: median(&ratios),
            min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            max: ratios.iter().copied().fold(0.0, f64::max),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = usize::from(self.median < 10.0) + usize::from(self.median < 1.5);
        let Self { median, min, max } = self;
        write!(f, "{median:.places$}x ({min:.places$}..{max:.places$})")
    }
}

// === impl Table ===

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(ToString::to_string).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].len()).max();
        let widths: Vec<usize> = (0..columns).filter_map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // The first column names the row; the rest are figures.
                if column == 0 {
                    write!(f, "| {cell:<width$} |")?;
                } else {
                    write!(f, " {cell:>width$} |")?;
                }
            }
            writeln!(f)?;
            if i == 0 {
                let dashes =
                    widths.iter().skip(1).map(|width| format!("{}:|", "-".repeat(width + 1)));
                writeln!(f, "|{}|{}", "-".repeat(widths[0] + 2), dashes.collect::<String>())?;
            }
        }
        Ok(())
    }
}

// === impl Verdict ===

impl Verdict {
    pub(crate) fn new(bound: impl Into<String>, holds: bool, figure: impl Into<String>) -> Self {
        Self { bound: bound.into(), figure: figure.into(), holds }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "holds" } else { "MISSED" };
        write!(f, "- {word}: {}: {}", self.bound, self.figure)
    }
}
