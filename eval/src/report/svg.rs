//! The pictures, drawn as SVG; the numbers they show stand in the tables beside them.

use super::figures::{Arm, Figures, Flow};
use super::page::escaped;
use crate::plan::PairKind;
use crate::resource::Dimension;
use crate::score::Scores;
use std::fmt::Write;

fn drawing(width: usize, height: usize, inside: &str, title: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\" role=\"img\"><title>{}</title>{inside}</svg>\n",
        escaped(title)
    )
}

fn text(x: f64, y: f64, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(words))
}

fn line(from: (f64, f64), to: (f64, f64), colour: &str) -> String {
    format!(
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
        from.0, from.1, to.0, to.1
    )
}

fn bar(x: f64, y: f64, width: f64, colour: &str) -> String {
    format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"12\" fill=\"{colour}\"/>", width.max(1.0))
}

/// How many pairs came how far, one column per kind, losses beside each stage.
pub(super) fn flow(figures: &Figures) -> String {
    let mut inside = String::new();
    for (column, (kind, of)) in figures.kinds.iter().enumerate() {
        let x = 10.0 + 240.0 * column as f64;
        inside += &text(x, 20.0, kind.as_str());
        for (row, (stage, number)) in stages(&of.flow).into_iter().enumerate() {
            let y = 35.0 + 52.0 * row as f64;
            let _ = write!(
                inside,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"200\" height=\"34\" fill=\"#eef3f8\" stroke=\"#345\"/>"
            );
            inside += &text(x + 8.0, y + 22.0, &format!("{stage}: {number}"));
            if row > 0 {
                inside += &line((x + 100.0, y - 18.0), (x + 100.0, y), "#345");
            }
        }
        let lost = of.flow.invalid.iter().filter(|(_, number)| **number > 0);
        for (row, (cause, number)) in lost.enumerate() {
            inside += &text(x, 375.0 + 18.0 * row as f64, &format!("{cause}: {number}"));
        }
    }
    drawing(
        20 + 240 * figures.kinds.len().max(1),
        480,
        &inside,
        "How many pairs came how far, and what the others were lost to",
    )
}

fn stages(flow: &Flow) -> [(&'static str, usize); 6] {
    [
        ("enrolled", flow.enrolled),
        ("committed", flow.committed),
        ("differ in the item alone", flow.compared),
        ("A answered", flow.answered_a),
        ("B answered", flow.answered_b),
        ("valid", flow.valid),
    ]
}

/// Each kind's mean difference with its interval, and under it the bounds with theirs.
pub(super) fn forest(figures: &Figures) -> String {
    let at = |difference: f64| 420.0 + 200.0 * difference;
    let mut inside = line((at(0.0), 10.0), (at(0.0), 30.0 + 60.0 * figures.kinds.len() as f64), "#999");
    for (row, (kind, of)) in figures.kinds.iter().enumerate() {
        let y = 40.0 + 60.0 * row as f64;
        inside += &text(10.0, y + 4.0, kind.as_str());
        let Ok(answers) = &of.answers else {
            inside += &text(220.0, y + 4.0, "no figure");
            continue;
        };
        if let Ok(valid) = &answers.valid {
            inside += &line((at(valid.interval.low), y), (at(valid.interval.high), y), "#123");
            let _ = write!(inside, "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#123\"/>", at(valid.value));
        }
        if let Ok(over) = &answers.over_bounds {
            inside += &line((at(over.low), y + 18.0), (at(over.high), y + 18.0), "#c60");
        }
        inside += &bar(at(answers.bounds.low), y + 12.0, at(answers.bounds.high) - at(answers.bounds.low), "#fa5");
        inside += &text(10.0, y + 22.0, "bounds over everything enrolled");
    }
    for difference in [-1.0, -0.5, 0.0, 0.5, 1.0] {
        inside += &text(at(difference) - 8.0, 50.0 + 60.0 * figures.kinds.len() as f64, &difference.to_string());
    }
    drawing(
        640,
        70 + 60 * figures.kinds.len(),
        &inside,
        "Mean difference A minus B: valid pairs, and bounds over everything enrolled",
    )
}

/// One line per way in which a valid pair about inheritance went from A to B, as thick as there are pairs.
pub(super) fn slopes(scores: &Scores) -> String {
    let mut ways: std::collections::BTreeMap<(u32, u32), usize> = std::collections::BTreeMap::new();
    let asked = scores.pairs.iter().filter(|row| row.record.kind == PairKind::Inheritance);
    for (a, b) in asked.filter_map(|row| row.a.zip(row.b)) {
        *ways.entry(((a * 100.0).round() as u32, (b * 100.0).round() as u32)).or_default() += 1;
    }
    let all: usize = ways.values().sum();
    let y = |score: u32| 230.0 - 2.0 * f64::from(score);
    let mut inside = text(60.0, 255.0, "A") + &text(340.0, 255.0, "B");
    for ((a, b), number) in &ways {
        let width = 1.0 + 24.0 * *number as f64 / all.max(1) as f64;
        let _ = write!(
            inside,
            "<line x1=\"70\" y1=\"{:.1}\" x2=\"340\" y2=\"{:.1}\" stroke=\"#247\" stroke-opacity=\"0.5\" stroke-width=\"{width:.1}\"/>",
            y(*a),
            y(*b)
        );
        inside += &text(350.0, y(*b) + 4.0, &format!("{a} → {b}: {number}"));
    }
    drawing(480, 270, &inside, "Scores of valid pairs, world A to world B")
}

/// What each arm took of what it may take; what is not known is not drawn and said.
pub(super) fn resources(arms: &[Arm]) -> String {
    let mut inside = String::new();
    let mut row = 0.0;
    for dimension in Dimension::ALL {
        inside += &text(10.0, 24.0 + 18.0 * row, dimension.as_str());
        for arm in arms {
            let taken = arm.taken.of(*dimension);
            let planned = arm.planned.get(dimension).copied().unwrap_or(taken.known).max(1);
            let (y, share) = (14.0 + 18.0 * row, (taken.known as f64 / planned as f64).min(1.0));
            if taken.told > 0 {
                inside += &bar(170.0, y, 200.0 * share, "#6a9");
            }
            inside += &text(380.0, y + 11.0, &format!("{}: {}", arm.world, taken.shown()));
            row += 1.0;
        }
    }
    drawing(680, 40 + 18 * row as usize, &inside, "What each arm took of what it may take")
}
