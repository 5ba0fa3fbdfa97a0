//! The page that everything else is reached from.

use super::compared;
use super::figures::{Arm, Figures, Influence, KindFigures};
use super::interpretation::Interpretation;
use super::procedures::Told;
use crate::accounts::World;
use crate::plan::Plan;
use crate::resource::Dimension;
use crate::score::Scores;
use crate::statistics::lost::ThreeAnswers;
use crate::statistics::{Estimate, Interval, Unfit};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Text as it may stand in a page.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A page with a frame around it; nothing in it is fetched.
pub(super) fn framed(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title><style>{STYLE}</style></head>\
         <body>{body}</body></html>\n",
        escaped(title)
    )
}

const STYLE: &str = "body{font-family:sans-serif;max-width:75rem;margin:1rem auto;padding:0 1rem}\
table{border-collapse:collapse;margin:.6rem 0}td,th{border:1px solid #ccc;padding:.25rem .5rem;text-align:left;vertical-align:top}\
pre{white-space:pre-wrap;max-width:36rem;font-size:.8rem}mark{background:#fd8}";

pub(super) type Rows = Vec<Vec<String>>;

pub(super) fn table(head: &[&str], rows: Rows) -> String {
    let row = |cells: Vec<String>, tag: &str| {
        cells.iter().fold("<tr>".to_owned(), |row, cell| row + &format!("<{tag}>{cell}</{tag}>")) + "</tr>"
    };
    let head = row(head.iter().map(|name| escaped(name)).collect(), "th");
    let body: String =
        rows.into_iter().map(|cells| row(cells.iter().map(|cell| escaped(cell)).collect(), "td")).collect();
    format!("<table>{head}{body}</table>")
}

fn interval(interval: &Result<Interval, Unfit>) -> String {
    match interval {
        Ok(interval) => format!("{:.3} to {:.3}", interval.low, interval.high),
        Err(unfit) => format!("not given: {unfit}"),
    }
}

fn estimate(estimate: &Result<Estimate, Unfit>) -> String {
    match estimate {
        Ok(estimate) => {
            format!("{:.3} ({}), {} pairs", estimate.value, interval(&Ok(estimate.interval)), estimate.pairs)
        }
        Err(unfit) => format!("not given: {unfit}"),
    }
}

fn p(p: &Result<f64, Unfit>) -> String {
    match p {
        Ok(p) if *p < 0.0005 => "< 0.001".to_owned(),
        Ok(p) => format!("{p:.3}"),
        Err(unfit) => format!("not given: {unfit}"),
    }
}

fn three(answers: &Result<ThreeAnswers, Unfit>) -> [String; 4] {
    match answers {
        Ok(answers) => [
            estimate(&answers.all_enrolled),
            estimate(&answers.valid),
            format!("{:.3} to {:.3}", answers.bounds.low, answers.bounds.high),
            interval(&answers.over_bounds),
        ],
        Err(unfit) => std::array::from_fn(|_| format!("not given: {unfit}")),
    }
}

pub(super) fn index(
    plan: &Plan,
    figures: &Figures,
    arms: &[Arm],
    scores: &Scores,
    files: &BTreeMap<String, Vec<u8>>,
    interpretations: &[Interpretation],
    compared: Option<&Told>,
) -> String {
    let picture = |name: &str| files.get(name).map(|svg| String::from_utf8_lossy(svg).into_owned()).unwrap_or_default();
    let mut body = format!(
        "<h1>{} (revision {})</h1><p>Frozen as {}.</p>",
        escaped(figures.study.as_str()),
        figures.revision,
        figures.freeze
    );
    let _ = write!(body, "<h2>Methods</h2><p>{}</p>", escaped(&methods(plan, figures)));
    body += "<h2>How many pairs came how far</h2>";
    let _ = write!(
        body,
        "<p>Of {} planned pairs {} were enrolled; {} were completed, {} were not.</p>",
        figures.planned,
        scores.pairs.len(),
        figures.completed,
        figures.failed
    );
    body += &picture("flow.svg");
    body += &flows(figures);
    body += "<h2>Observations: does the item change the next step?</h2>";
    body += &picture("forest.svg");
    body += &estimates(figures);
    let _ = write!(body, "<p>{}</p>", influence(figures));
    body += &picture("slopes.svg");
    body += &floors(figures);
    body += "<h2>By family</h2>";
    body += &families(figures);
    body += "<h2>What each world came to</h2>";
    body += &measures(figures);
    body += "<h2>What each arm took</h2>";
    body += &picture("resources.svg");
    body += &resources(arms);
    body += "<h2>What this does not say</h2><h3>Advantage of three roles</h3>";
    body += &compared.map_or_else(|| "<p>Not examined by this study.</p>".to_owned(), compared::section);
    body += LIMITS;
    body += &interpreted(interpretations);
    body += "<h2>Pairs</h2><ul>";
    for row in &scores.pairs {
        let cause = row.cause().map_or_else(|| "valid".to_owned(), |cause| cause.to_string());
        let (name, page) = (escaped(row.pair.as_str()), format!("pairs/{}.html", row.pair));
        let _ = match files.contains_key(&page) {
            true => write!(body, "<li><a href=\"{}\">{name}</a>: {cause}</li>", escaped(&page)),
            false => write!(body, "<li>{name}: {cause}; its packets are withheld</li>"),
        };
    }
    body += "</ul><h2>Tables</h2><ul>";
    let is_table = |name: &&String| [".csv", ".json", ".parquet"].iter().any(|end| name.ends_with(end));
    for name in files.keys().filter(is_table) {
        let _ = write!(body, "<li><a href=\"{name}\">{name}</a></li>");
    }
    framed(figures.study.as_str(), &(body + "</ul>"))
}

const LIMITS: &str = "<h3>Learning that transfers</h3><p>Not examined by this study: a pair shows whether one committed item changes one next step.</p>\
<h3>Economic return</h3><p>Not examined by this study: what was taken is no return, and no figure above supports one.</p>\
";

fn influence(figures: &Figures) -> &'static str {
    match figures.influence {
        Influence::NotClaimed => {
            "No influence of what was inherited is claimed: there is no valid pair that differs in exactly that."
        }
        Influence::NotShown => "The pairs show no influence of what was inherited: no difference is possible.",
        Influence::Shown => {
            "What was inherited changed what is worth of the next step, whatever the lost scores were; hold it against the controls."
        }
    }
}

/// What people make of it, apart from the observations.
fn interpreted(interpretations: &[Interpretation]) -> String {
    let mut told = "<h2>Interpretations</h2>".to_owned();
    if interpretations.is_empty() {
        told += "<p>None. Observations stand above; none of them is interpreted by the program.</p>";
    }
    for interpretation in interpretations {
        let rests_on: Vec<String> = interpretation.rests_on.iter().map(ToString::to_string).collect();
        let corrects = interpretation.corrects.as_ref().map_or_else(String::new, |text| format!(" Corrects: {text}."));
        let _ = write!(
            told,
            "<p>{}: {}{} (rests on {})</p>",
            escaped(interpretation.by.as_str()),
            escaped(interpretation.text.as_str()),
            escaped(&corrects),
            rests_on.join(", ")
        );
    }
    told
}

/// The methods, as a paragraph made from the plan.
fn methods(plan: &Plan, figures: &Figures) -> String {
    let analysis = &plan.analysis;
    let controls: Vec<&str> = plan.controls.iter().map(|kind| kind.as_str()).collect();
    let power = figures.power.map_or_else(String::new, |power| {
        format!(" With what was expected, the exact test at 5 % had a power of {:.0} %.", power * 100.0)
    });
    format!(
        "Each item was committed by ordinary admission; from that one store two worlds began, which differ in the item alone. \
         Their packets were compared before either was handed out, and each was answered by a process of its own. Controls: {}. \
         The order of the pairs and of the worlds was drawn with seed {}. Each world ran {} time(s). A step counts by operation, \
         target and parameters, where it is right and justified by what the world had. Intervals: {:?} at {} %; a lost score \
         counts as {} % where everything enrolled is counted; bootstrap: BCa with {} resamples.{power}",
        if controls.is_empty() { "none".to_owned() } else { controls.join(", ") },
        plan.seed,
        plan.repeats,
        analysis.method,
        analysis.confidence_percent,
        analysis.lost_score_percent,
        analysis.resamples
    )
}

fn flows(figures: &Figures) -> String {
    let mut rows = Rows::new();
    for (kind, of) in &figures.kinds {
        let lost = of.flow.invalid.iter().filter(|(_, number)| **number > 0);
        let lost: Vec<String> = lost.map(|(cause, number)| format!("{cause} {number}")).collect();
        let failures: Vec<String> =
            of.flow.failures.iter().map(|(class, number)| format!("{class} {number}")).collect();
        rows.push(vec![
            kind.to_string(),
            of.flow.enrolled.to_string(),
            of.flow.valid.to_string(),
            (of.flow.enrolled - of.flow.valid - of.flow.pending).to_string(),
            lost.join(", "),
            failures.join(", "),
        ]);
    }
    table(&["pairs", "enrolled", "valid", "invalid", "by cause", "failures"], rows)
}

fn estimates(figures: &Figures) -> String {
    let row = |(kind, of): (&crate::plan::PairKind, &KindFigures)| {
        let mut cells = vec![kind.to_string()];
        cells.extend(three(&of.answers));
        let [a, b] = of.discordant;
        cells.extend([format!("{a} / {b}"), p(&of.exact_p), p(&of.mid_p), p(&of.t_p), interval(&of.bootstrap)]);
        cells.push(of.no_harm_p.as_ref().map_or_else(|| "no margin".to_owned(), p));
        cells.push(of.same_step.to_string());
        cells
    };
    let head = [
        "pairs",
        "all enrolled",
        "valid pairs",
        "bounds",
        "interval over the bounds",
        "only A / only B better",
        "exact p",
        "mid-p",
        "t p",
        "BCa",
        "no harm p",
        "same step",
    ];
    table(&head, figures.kinds.iter().map(row).collect())
}

fn floors(figures: &Figures) -> String {
    let floors = &figures.floors;
    let named = [
        ("do nothing", floors.do_nothing),
        ("always ask", floors.always_ask),
        ("always refuse", floors.always_refuse),
        ("oracle with the item", floors.oracle_with_item),
        ("oracle without the item", floors.oracle_without_item),
    ];
    table(&["floor", "mean score"], named.map(|(name, score)| vec![name.to_owned(), format!("{score:.3}")]).to_vec())
}

fn families(figures: &Figures) -> String {
    let row = |(name, of): (&closer_contracts::id::Key, &super::figures::FamilyFigures)| {
        let mut cells = vec![name.to_string(), if of.planned { "planned" } else { "exploratory" }.to_owned()];
        cells.extend(three(&of.answers));
        cells.extend([p(&of.p), of.holm_p.map_or_else(String::new, |holm| format!("{holm:.3}"))]);
        cells
    };
    let head = ["family", "", "all enrolled", "valid pairs", "bounds", "interval over the bounds", "t p", "Holm"];
    table(&head, figures.families.iter().map(row).collect())
}

fn measures(figures: &Figures) -> String {
    let worlds: Vec<&super::figures::Measures> = World::ALL.iter().filter_map(|w| figures.measures.get(w)).collect();
    let limit = |of: &super::figures::Measures| match of.unauthorized_effects_limit {
        Some(limit) => format!("none in {} (below {:.1} % at 95 %)", of.runs, limit * 100.0),
        None => of.unauthorized_effects.to_string(),
    };
    type Told<'a> = &'a dyn Fn(&super::figures::Measures) -> String;
    let numbers: [(&str, Told<'_>); 15] = [
        ("runs", &|of| of.runs.to_string()),
        ("right and justified steps", &|of| of.correct.to_string()),
        ("right without justification", &|of| of.guesses.to_string()),
        ("wrong target", &|of| of.wrong_target.to_string()),
        ("unsupported promotions proposed", &|of| of.unsupported_claims.to_string()),
        ("invalidation misses", &|of| of.invalidation_misses.to_string()),
        ("unauthorized steps attempted", &|of| of.unauthorized_attempted.to_string()),
        ("unauthorized effects", &limit),
        ("verified postconditions", &|of| of.verified.to_string()),
        ("duplicate effects", &|of| of.duplicates.to_string()),
        ("unnecessary probes", &|of| of.unnecessary_probes.to_string()),
        ("obligations retained / orphaned", &|of| format!("{} / {}", of.retained, of.orphaned)),
        ("questions to the user", &|of| of.questions.to_string()),
        ("words to read for them", &|of| of.words_to_read.to_string()),
        ("usage not told", &|of| of.usage_missing.to_string()),
    ];
    let rows = numbers.iter().map(|(name, of)| {
        std::iter::once((*name).to_owned()).chain(worlds.iter().map(|world| of(world))).collect::<Vec<_>>()
    });
    table(&["measure", "world A", "world B"], rows.collect())
}

fn resources(arms: &[Arm]) -> String {
    let mut rows = Rows::new();
    for arm in arms {
        for dimension in Dimension::ALL {
            let planned = arm.planned.get(dimension).map_or_else(|| "not stated".to_owned(), ToString::to_string);
            let over = if arm.exceeded.contains(dimension) { "exceeded" } else { "" };
            let taken = arm.taken.of(*dimension).shown();
            rows.push(vec![arm.world.to_string(), dimension.to_string(), planned, taken, over.to_owned()]);
        }
    }
    table(&["world", "dimension", "planned", "used", ""], rows)
}
