//! A run as SVG: requests sent and admitted, and the sum of admissions per window.
//!
//! The greys are legible on light and dark pages; blue and vermilion are distinguishable with any
//! colour vision.

use std::fmt::Write as _;

use crate::run::{LIMIT, Run, SECONDS, WINDOW, per};

const WIDTH: u64 = 720;
const LEFT: u64 = 48;
const RIGHT: u64 = 708;
const HEIGHT: u64 = 356;
const PANEL: u64 = 110;
/// Vertical positions of the panels' zero lines.
const BARS: u64 = 172;
const LINE: u64 = 318;
const MOST: u64 = 200;
const BIN: u64 = 10;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#767d86}\
    .name{font-weight:600;font-size:14px}.end{text-anchor:end}.middle{text-anchor:middle}\
    .grid{stroke:#767d86;stroke-opacity:.3}.limit{stroke:#767d86;stroke-dasharray:5 4}\
    .asked{fill:#767d86;fill-opacity:.25;stroke:#767d86}.admitted{fill:#0072b2}\
    .line{fill:none;stroke:#d55e00;stroke-width:2}.peak{fill:#d55e00;font-weight:600}";

pub(crate) fn draw(run: &Run) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <title>{}: requests asked and admitted over {SECONDS} seconds</title>\n<style>{STYLE}</style>\n",
        run.algorithm
    );
    heading(&mut svg, run);
    axes(&mut svg, BARS, &format!("requests per {BIN} s"));
    bars(&mut svg, "asked", &run.asked);
    bars(&mut svg, "admitted", &run.admitted);
    axes(&mut svg, LINE, &format!("admitted in the last {} s", WINDOW.as_secs()));
    seconds(&mut svg);
    last_window(&mut svg, run);
    svg.push_str("</svg>\n");
    svg
}

fn x(second: u64) -> String {
    pixels(LEFT * 10 + (RIGHT - LEFT) * 10 * second / SECONDS)
}

fn y(zero: u64, count: u64) -> String {
    pixels(zero * 10 - PANEL * 10 * count / MOST)
}

/// Positions are in tenths of a pixel, so that a single second or request is visible.
fn pixels(tenths: u64) -> String {
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        tenth => format!("{}.{tenth}", tenths / 10),
    }
}

fn heading(svg: &mut String, run: &Run) {
    let burst = run.burst.map(|burst| format!(", burst {burst}")).unwrap_or_default();
    let window = WINDOW.as_secs();
    let _ = writeln!(
        svg,
        "<text class=\"name\" x=\"{LEFT}\" y=\"22\">{}: {LIMIT} per {window} s{burst}</text>",
        run.algorithm
    );
    for (left, class, word) in [(572, "asked", "asked"), (632, "admitted", "admitted")] {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{left}\" y=\"12\" width=\"11\" height=\"11\"/>\
             <text x=\"{}\" y=\"22\">{word}</text>",
            left + 16
        );
    }
}

/// Draws a panel's title, its axis labels, and a grid line for each.
fn axes(svg: &mut String, zero: u64, title: &str) {
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\">{title}</text>", zero - PANEL - 10);
    for count in (0..=MOST).step_by(LIMIT as usize) {
        let y = zero - PANEL * count / MOST;
        let class = if count == LIMIT && zero == LINE { "limit" } else { "grid" };
        let _ = writeln!(
            svg,
            "<path class=\"{class}\" d=\"M{LEFT} {y}H{RIGHT}\"/>\
             <text class=\"end\" x=\"{}\" y=\"{}\">{count}</text>",
            LEFT - 8,
            y + 4
        );
    }
    for boundary in (0..=SECONDS).step_by(WINDOW.as_secs() as usize) {
        let _ = write!(svg, "<path class=\"grid\" d=\"M{} {}v-{PANEL}\"/>", x(boundary), zero);
    }
    svg.push('\n');
}

fn seconds(svg: &mut String) {
    for boundary in (0..=SECONDS).step_by(WINDOW.as_secs() as usize) {
        let class = if boundary == SECONDS { "end" } else { "middle" };
        let unit = if boundary == SECONDS { " s" } else { "" };
        let _ = write!(
            svg,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{boundary}{unit}</text>",
            x(boundary),
            LINE + 18
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"middle\" x=\"{}\" y=\"{}\">seconds, with a line at every multiple of the window</text>",
        x(SECONDS / 2),
        LINE + 34
    );
}

fn bars(svg: &mut String, class: &str, times: &[u64]) {
    let width = (RIGHT - LEFT) * BIN / SECONDS - 4;
    let _ = write!(svg, "<path class=\"{class}\" d=\"");
    for (bin, count) in (0..).zip(per(BIN, times)).filter(|(_, count)| *count > 0) {
        let left = LEFT + (RIGHT - LEFT) * bin * BIN / SECONDS + 2;
        let top = y(BARS, count as u64);
        let _ = write!(svg, "M{left} {BARS}V{top}h{width}V{BARS}z");
    }
    svg.push_str("\"/>\n");
}

fn last_window(svg: &mut String, run: &Run) {
    let counts: Vec<_> = (0..=SECONDS).map(|second| run.in_last_window(second) as u64).collect();
    let _ = write!(svg, "<path class=\"line\" d=\"M{LEFT} {}", y(LINE, counts[0]));
    let mut drawn = counts[0];
    for (second, count) in (0..).zip(counts) {
        if count != drawn {
            let from = x(second - 1);
            let _ = write!(svg, "H{from}L{} {}", x(second), y(LINE, count));
            drawn = count;
        }
    }
    let _ = writeln!(svg, "H{RIGHT}\"/>");
    let _ = writeln!(
        svg,
        "<text class=\"peak end\" x=\"{RIGHT}\" y=\"{}\">at most {}; dashed: the limit, {LIMIT}</text>",
        LINE - PANEL - 10,
        run.peak()
    );
}
