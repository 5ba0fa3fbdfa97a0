//! A page per pair: both packets, how they differ, both answers.

use super::NotReported;
use super::page::{escaped, framed};
use crate::artifacts::Artifacts;
use crate::packet::Difference;
use crate::score::{PairRow, Scores};
use closer_contracts::Digest;
use closer_contracts::refs::ArtifactRef;
use closer_contracts::work::Work;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn files(scores: &Scores, artifacts: &Artifacts) -> Result<BTreeMap<String, Vec<u8>>, NotReported> {
    let mut worlds: BTreeMap<&str, Vec<&crate::score::WorldRow>> = BTreeMap::new();
    for row in &scores.worlds {
        worlds.entry(row.pair.as_str()).or_default().push(row);
    }
    let page = |row: &PairRow| {
        let of_pair = worlds.get(row.pair.as_str()).map(Vec::as_slice).unwrap_or_default();
        Ok((format!("pairs/{}.html", row.pair), page(row, of_pair, artifacts)?.into_bytes()))
    };
    scores.pairs.iter().map(page).collect()
}

fn page(row: &PairRow, worlds: &[&crate::score::WorldRow], artifacts: &Artifacts) -> Result<String, NotReported> {
    let mut body = format!("<p><a href=\"../index.html\">report</a></p><h1>{}</h1>", escaped(row.pair.as_str()));
    match row.cause() {
        None => body += "<p>Valid.</p>",
        Some(cause) => {
            let reason = row.record.reason.as_deref().unwrap_or("");
            let _ = write!(body, "<p>Invalid: <b>{cause}</b>. {}</p>", escaped(reason));
        }
    }
    for world in worlds {
        let outcome = &world.outcome;
        let _ = write!(
            body,
            "<p>World {} (repeat {}): <b>{}</b>, {} percent; {}; the target {}{}</p>",
            world.world,
            world.repeat,
            escaped(&outcome.step.shown()),
            world.score,
            if outcome.admitted { "admitted" } else { "not admitted" },
            outcome.readback,
            match outcome.refusals.is_empty() {
                true => String::new(),
                false => format!("; refused: {}", escaped(&outcome.refusals.join(" "))),
            }
        );
    }
    if let Some([a, b, difference, _]) = row.record.compared {
        let difference: Difference = artifacts.get(difference)?;
        body += &differing(&difference);
        body += "<table><tr><th>packet of A</th><th>packet of B</th></tr><tr>";
        for digest in [a, b] {
            let _ = write!(body, "<td><pre>{}</pre></td>", packet(digest, &difference, artifacts)?);
        }
        body += "</tr></table>";
    }
    Ok(framed(row.pair.as_str(), &body))
}

fn differing(difference: &Difference) -> String {
    let refs = |refs: &[ArtifactRef]| {
        let all: Vec<String> = refs.iter().map(|one| format!("{} {}", one.id, one.digest)).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    };
    let mut told = format!(
        "<p>A has and B lacks: <b>{}</b>. B has and A lacks: {}.</p>",
        escaped(&refs(&difference.removed)),
        escaped(&refs(&difference.added))
    );
    for (what, places) in [("differs besides", &difference.changed), ("told in B all the same", &difference.restated)] {
        if !places.is_empty() {
            let _ = write!(told, "<p>{what}: {}</p>", escaped(&places.join(", ")));
        }
    }
    told
}

/// A packet in lines, the items that the other lacks marked.
fn packet(digest: Digest, difference: &Difference, artifacts: &Artifacts) -> Result<String, NotReported> {
    let work: Work = artifacts.get(digest)?;
    let shown = |value: &serde_json::Value| {
        serde_json::to_string_pretty(value).map_err(|error| NotReported::Unwritable(error.to_string()))
    };
    let mut told = format!("{digest}\n{}\n\n", escaped(work.question.text.as_str()));
    for item in &work.context_items {
        let is_marked = difference.removed.contains(&item.reference) || difference.added.contains(&item.reference);
        let text = escaped(&format!("{} {}\n{}\n", item.reference.id, item.reference.digest, shown(&item.content.0)?));
        told += &if is_marked { format!("<mark>{text}</mark>\n") } else { format!("{text}\n") };
    }
    Ok(told)
}
