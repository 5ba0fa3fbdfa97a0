//! The part of the page about two procedures.

use super::page::{Rows, escaped, table};
use super::procedures::{ProcedureFigures, Told};
use crate::effort::ArmEffort;
use crate::resource::Dimension;
use std::fmt::Write;

/// What the study says of two procedures, and what it does not.
pub(super) fn section(told: &Told) -> String {
    let figures = &told.figures;
    let [a, b] = &figures.arms;
    let mut body =
        format!("<p>{} (A) against {} (B), on the same packets.</p>", escaped(a.as_str()), escaped(b.as_str()));
    match &figures.comparison {
        Err(reasons) => {
            let reasons: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
            let _ = write!(body, "<p>Not compared: {}.</p>", reasons.join(", "));
            return body;
        }
        Ok(comparison) => {
            let _ = write!(
                body,
                "<p>The arms are <b>{}</b>. {} valid pairs tested the mechanism before. How the scores differ stands above, under <i>procedure</i>.</p>",
                escaped(&comparison.label),
                figures.mechanism_valid.unwrap_or(0)
            );
        }
    }
    body += &measures(figures);
    body += &charges(told);
    if !figures.offering.is_empty() {
        let known = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
        let rows = figures.offering.iter().map(|one| {
            let better = if one.less_is_better { "less is better" } else { "more is better" };
            vec![one.measure.to_owned(), known(one.arms[0]), known(one.arms[1]), better.to_owned()]
        });
        body += &table(&["measure of the offering", a.as_str(), b.as_str(), ""], rows.collect());
    }
    body
}

fn measures(figures: &ProcedureFigures) -> String {
    let [a, b] = &figures.arms;
    let number =
        |name: &str, numbers: [usize; 2]| vec![name.to_owned(), numbers[0].to_string(), numbers[1].to_string()];
    let of = |take: fn(&super::figures::Measures) -> usize| [take(&figures.measures[0]), take(&figures.measures[1])];
    let protection = |take: fn(&crate::comparison::Protection) -> usize| {
        [take(&figures.protection[0]), take(&figures.protection[1])]
    };
    let mut rows: Rows = vec![
        number("runs that were scored", of(|measures| measures.runs)),
        number("right and justified steps", of(|measures| measures.correct)),
        number("worth having, and new to the user", figures.gained),
        number("questions to the user", of(|measures| measures.questions)),
        number("words to read for them", of(|measures| measures.words_to_read)),
        number("stopped by the arm itself", protection(|one| one.arm)),
        number("stopped by the finalizer both share; no arm's credit", protection(|one| one.finalizer)),
        number("stopped by nobody", protection(|one| one.failed)),
    ];
    let minutes = |arm: &ArmEffort| {
        let shown =
            |minutes: Option<f64>| minutes.map_or_else(|| "unknown".to_owned(), |minutes| format!("{minutes:.1}"));
        let [enrolled, resolved] = arm.minutes_per();
        format!("{} / {}", shown(enrolled), shown(resolved))
    };
    let effort = figures
        .effort
        .as_ref()
        .map_or_else(|| ["unknown".to_owned(), "unknown".to_owned()], |[a, b]| [minutes(a), minutes(b)]);
    let [of_a, of_b] = effort;
    rows.push(vec!["minutes of the user, by enrolled / by resolved item".to_owned(), of_a, of_b]);
    table(&["measure", a.as_str(), b.as_str()], rows)
}

fn charges(told: &Told) -> String {
    let mut rows = Rows::new();
    for charged in &told.charged {
        for dimension in Dimension::ALL {
            if *dimension == Dimension::Concurrency && charged.planned.is_empty() {
                continue;
            }
            let planned = charged.planned.get(dimension).map_or_else(String::new, ToString::to_string);
            let taken = charged.taken.of(*dimension).shown();
            rows.push(vec![charged.arm.to_string(), charged.charge.to_owned(), dimension.to_string(), planned, taken]);
        }
    }
    table(&["arm", "charged to", "dimension", "planned", "used"], rows)
}
