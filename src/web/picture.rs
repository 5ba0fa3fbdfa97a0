//! A trace as a picture: one box a stage, from top to bottom, drawn by the server so that it prints and needs no script.

use super::obligations::Step;
use std::fmt::Write;

const WIDTH: usize = 300;
const BOX: usize = 44;
const STEP: usize = 62;
/// The most characters of a line in a box.
const LINE_MAX: usize = 44;
/// The most boxes that are drawn; the table beside has all.
const BOXES_MAX: usize = 60;

/// The picture. Whatever comes from a record is escaped here, since the page takes it as it is.
pub(super) fn trace(steps: &[Step]) -> String {
    let drawn = steps.len().min(BOXES_MAX);
    let height = (drawn * STEP).max(STEP);
    let mut svg = format!(
        "<svg class=\"trace\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" aria-labelledby=\"picture-title picture-desc\">\
         <title id=\"picture-title\">The trace as a picture</title>\
         <desc id=\"picture-desc\">{drawn} of {} stages from top to bottom; the table below says the same.</desc>",
        steps.len()
    );
    for (index, step) in steps.iter().take(BOXES_MAX).enumerate() {
        let y = index * STEP + 4;
        let (stage, verdict) = (escaped(step.stage.as_str()), escaped(&cut(step.verdict.as_str())));
        // Writing to a String cannot fail.
        let _ = write!(
            svg,
            "<g class=\"{}\"><rect x=\"2\" y=\"{y}\" width=\"{}\" height=\"{BOX}\" rx=\"6\"/>\
             <text class=\"stage\" x=\"12\" y=\"{}\">{stage}</text><text x=\"12\" y=\"{}\">{verdict}</text></g>",
            mood(step.stage.as_str()),
            WIDTH - 4,
            y + 18,
            y + 35
        );
        if index + 1 < drawn {
            let (from, to) = (y + BOX, y + STEP);
            let _ = write!(
                svg,
                "<path d=\"M24 {from} V{}\"/><path class=\"head\" d=\"M19 {} L24 {to} L29 {}\"/>",
                to - 2,
                to - 6,
                to - 6
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

fn mood(stage: &str) -> &'static str {
    match stage {
        "receipt" => "good",
        "refusal" => "bad",
        "bench" | "decision" | "grant" => "person",
        _ => "plain",
    }
}

fn cut(text: &str) -> String {
    match text.chars().count() > LINE_MAX {
        true => text.chars().take(LINE_MAX - 1).chain("…".chars()).collect(),
        false => text.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
