//! The tables: one row per pair, world, attempt and figure, as CSV and Parquet, with a dictionary of their columns.

use super::NotReported;
use super::figures::{Arm, Figures};
use super::parquet::{self, Kind};
use crate::accounts::{Accounts, AttemptEnd};
use crate::resource::Dimension;
use crate::score::Scores;
use std::collections::BTreeMap;

/// A column: its table, its name, what it holds.
type Column = (&'static str, &'static str, &'static str);

/// Every column of every table.
const COLUMNS: &[Column] = &[
    ("pairs", "pair", "name of the pair"),
    ("pairs", "item", "name of its item"),
    ("pairs", "kind", "inheritance, same, placebo, stale or procedure"),
    ("pairs", "family", "family of the item"),
    ("pairs", "cluster", "cluster of the item"),
    ("pairs", "fate", "valid, invalid or pending"),
    ("pairs", "cause", "why it is invalid; empty where it is valid"),
    ("pairs", "class", "manipulation, commit, task, contract or study"),
    ("pairs", "score_a", "score of world A, 0 to 1, repeats averaged; empty where it was lost"),
    ("pairs", "score_b", "score of world B"),
    ("pairs", "difference", "score of A minus score of B; empty where either was lost"),
    ("pairs", "packet_a", "digest of the packet of world A"),
    ("pairs", "packet_b", "digest of the packet of world B"),
    ("pairs", "packet_difference", "digest of how they differ"),
    ("pairs", "state", "digest of the state that both monitors judge on"),
    ("worlds", "pair", "name of the pair"),
    ("worlds", "world", "a or b"),
    ("worlds", "repeat", "which repeat, from 1"),
    ("worlds", "had_item", "whether the packet had what the truth is about"),
    ("worlds", "score_percent", "what the step is worth, in percent"),
    ("worlds", "guessed", "right without what justifies it"),
    ("worlds", "step", "the step in words"),
    ("worlds", "step_digest", "what it is compared by"),
    ("worlds", "wrong_target", "about another target than the item's"),
    ("worlds", "unnecessary_probe", "looked for what was inherited"),
    ("worlds", "usage_told", "whether the participant said what it took"),
    ("worlds", "admitted", "whether the monitor admitted it"),
    ("worlds", "refusals", "codes, in order"),
    ("worlds", "effects", "effects that took place"),
    ("worlds", "duplicates", "effects that took place twice"),
    ("worlds", "unadmitted_effects", "effects without an admission"),
    ("worlds", "readback", "what the target showed: matched, not_matched, unknown or none"),
    ("worlds", "unsupported_claims", "claims that the record does not bear out"),
    ("worlds", "questions", "questions put to the user"),
    ("worlds", "words_to_read", "words of these questions"),
    ("worlds", "retained", "obligations open with a trigger or a known gap"),
    ("worlds", "orphaned", "obligations open with neither"),
    ("questions", "pair", "name of the pair"),
    ("questions", "world", "a or b"),
    ("questions", "repeat", "which repeat, from 1"),
    ("questions", "necessity", "100 where asking is worth something by the truth"),
    ("questions", "specificity", "100 where it names the exact thing"),
    ("questions", "evidence", "100 where it cites any"),
    ("questions", "alternatives", "100 where it gives two at least"),
    ("questions", "consequence", "100 where it says what waits and what goes on"),
    ("questions", "preserved_choice", "100 where putting it decides nothing"),
    ("attempts", "pair", "name of the pair"),
    ("attempts", "world", "a or b"),
    ("attempts", "repeat", "which repeat, from 1"),
    ("attempts", "attempt", "which attempt, from 1 (volatile)"),
    ("attempts", "end", "counted, or why not (volatile)"),
    ("attempts", "reason", "in words (volatile)"),
    ("attempts", "answer", "digest of the answer"),
    ("attempts", "outcome", "digest of what became of it"),
    ("attempts", "calls", "calls; unknown where nobody says"),
    ("attempts", "input_tokens", "tokens in"),
    ("attempts", "output_tokens", "tokens out"),
    ("attempts", "reasoning_tokens", "tokens of reasoning"),
    ("attempts", "cached_tokens", "tokens from a cache"),
    ("attempts", "cost_micros", "money in millionths"),
    ("attempts", "served_model", "the model that served, as it names itself"),
    ("attempts", "fingerprint", "the back end's fingerprint"),
    ("attempts", "finish_reason", "why the answer ended"),
    ("attempts", "wall_ms", "wall time (volatile)"),
    ("attempts", "process", "id of the process that answered (volatile)"),
    ("cases", "pair", "name of the pair; both worlds have the item"),
    ("cases", "world", "a or b"),
    ("cases", "arm", "name of the arm"),
    ("cases", "repeat", "which repeat, from 1"),
    ("cases", "valid", "whether its pair is valid"),
    ("cases", "step", "the step in words"),
    ("cases", "score_percent", "what the step is worth, in percent"),
    (
        "cases",
        "user_had_it",
        "whether the user had the best step or question already; unknown where the truth does not say",
    ),
    ("cases", "gained", "worth having, and the user did not have it"),
    ("cases", "role_calls", "stages that answered and decide or contribute"),
    ("cases", "coordination_calls", "calls of stages that only hand on; unknown stays unknown"),
    ("cases", "coordination_input_tokens", "tokens in for handing on"),
    ("cases", "coordination_output_tokens", "tokens out for handing on"),
    (
        "cases",
        "stopped_by",
        "who stopped what should not take effect: arm, finalizer or nobody; empty where nothing could",
    ),
    ("calls", "pair", "name of the pair"),
    ("calls", "world", "a or b"),
    ("calls", "repeat", "which repeat, from 1"),
    ("calls", "attempt", "in which attempt (volatile)"),
    ("calls", "stage", "which stage, from 1"),
    ("calls", "role", "its role"),
    ("calls", "coordinates", "whether it only hands on"),
    ("calls", "packet", "digest of what it was handed"),
    ("calls", "end", "counted, or why not (volatile)"),
    ("calls", "reason", "in words (volatile)"),
    ("calls", "answer", "digest of the answer"),
    ("calls", "calls", "calls; unknown where nobody says"),
    ("calls", "input_tokens", "tokens in"),
    ("calls", "output_tokens", "tokens out"),
    ("calls", "reasoning_tokens", "tokens of reasoning"),
    ("calls", "cached_tokens", "tokens from a cache"),
    ("calls", "cost_micros", "money in millionths"),
    ("calls", "served_model", "the model that served, as it names itself"),
    ("calls", "fingerprint", "the back end's fingerprint"),
    ("calls", "finish_reason", "why the answer ended"),
    ("calls", "wall_ms", "wall time (volatile)"),
    ("calls", "process", "id of the process that answered (volatile)"),
    ("charges", "arm", "name of the arm"),
    ("charges", "charge", "roles, coordination, or all of it"),
    ("charges", "dimension", "which"),
    ("charges", "planned", "what the arm's vector allows; of all of it alone"),
    ("charges", "used", "what was taken; unknown stays unknown (volatile)"),
    ("charges", "unknown_parts", "how many parts of the sum nobody knows (volatile)"),
    ("resources", "world", "a or b"),
    ("resources", "dimension", "which"),
    ("resources", "planned", "what the vector allows; empty where it states nothing"),
    ("resources", "used", "what was taken; unknown stays unknown (volatile)"),
    ("resources", "unknown_parts", "how many parts of the sum nobody knows (volatile)"),
];

/// One CSV field.
fn field(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// A table in both forms, by the names of its files.
pub(super) fn both(
    table: &str,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<[(String, Vec<u8>); 2], NotReported> {
    let columns: Vec<&str> = COLUMNS.iter().filter(|(of, _, _)| *of == table).map(|(_, name, _)| *name).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let columnar = parquet::table(table, &columns, &rows)?;
    Ok([(format!("{table}.csv"), csv(table, rows)), (format!("{table}.parquet"), columnar)])
}

fn csv(table: &str, rows: impl IntoIterator<Item = Vec<String>>) -> Vec<u8> {
    let names: Vec<String> =
        COLUMNS.iter().filter(|(of, _, _)| *of == table).map(|(_, name, _)| (*name).to_owned()).collect();
    let lines = std::iter::once(names).chain(rows);
    lines.map(|row| row.iter().map(|text| field(text)).collect::<Vec<_>>().join(",") + "\n").collect::<String>().into()
}

fn score(score: Option<f64>) -> String {
    score.map_or_else(String::new, |score| format!("{score:.6}"))
}

pub(super) fn files(
    accounts: &Accounts,
    scores: &Scores,
    figures: &Figures,
    arms: &[Arm],
) -> Result<BTreeMap<String, Vec<u8>>, NotReported> {
    let json = serde_json::to_vec_pretty(figures).map_err(|error| NotReported::Unwritable(error.to_string()))?;
    let line = |(table, name, holds): &Column| format!("{table},{name},{},{}\n", Kind::of(name).as_str(), field(holds));
    let dictionary = COLUMNS.iter().map(line);
    let dictionary: String = std::iter::once("table,column,type,holds\n".to_owned()).chain(dictionary).collect();
    let mut files: BTreeMap<String, Vec<u8>> =
        [("figures.json".to_owned(), json), ("columns.csv".to_owned(), dictionary.into_bytes())].into();
    files.extend(both("pairs", pairs(scores))?);
    files.extend(both("worlds", worlds(scores))?);
    files.extend(both("questions", questions(scores))?);
    files.extend(both("attempts", attempts(accounts))?);
    files.extend(both("resources", resources(arms))?);
    Ok(files)
}

fn pairs(scores: &Scores) -> impl Iterator<Item = Vec<String>> {
    scores.pairs.iter().map(|row| {
        let record = &row.record;
        let fate = match record.fate {
            crate::accounts::Fate::Pending => "pending",
            crate::accounts::Fate::Valid => "valid",
            crate::accounts::Fate::Invalid(_) => "invalid",
        };
        let cause = row.cause();
        let mut fields = vec![
            row.pair.to_string(),
            record.item.to_string(),
            record.kind.to_string(),
            record.family.to_string(),
            record.cluster.to_string(),
            fate.to_owned(),
            cause.map_or_else(String::new, |cause| cause.to_string()),
            cause.map_or_else(String::new, |cause| cause.class().to_string()),
            score(row.a),
            score(row.b),
            score(row.a.zip(row.b).map(|(a, b)| a - b)),
        ];
        let digests = record.compared.map(|digests| digests.map(|digest| digest.to_string()));
        fields.extend(digests.unwrap_or_default());
        fields
    })
}

fn worlds(scores: &Scores) -> impl Iterator<Item = Vec<String>> {
    scores.worlds.iter().map(|row| {
        let outcome = &row.outcome;
        let words: usize = outcome.questions.iter().map(|question| question.words).sum();
        vec![
            row.pair.to_string(),
            row.world.to_string(),
            row.repeat.to_string(),
            row.had_item.to_string(),
            row.score.to_string(),
            row.guessed.to_string(),
            outcome.step.shown(),
            outcome.step_digest.to_string(),
            row.wrong_target.to_string(),
            row.unnecessary_probe.to_string(),
            row.usage_told.to_string(),
            outcome.admitted.to_string(),
            outcome.refusals.join(" "),
            outcome.effects.to_string(),
            outcome.duplicates.to_string(),
            outcome.unadmitted_effects.to_string(),
            outcome.readback.to_string(),
            outcome.unsupported_claims.to_string(),
            outcome.questions.len().to_string(),
            words.to_string(),
            outcome.retained.to_string(),
            outcome.orphaned.to_string(),
        ]
    })
}

/// Questions are scored on six aspects, from the packet itself and, for their necessity, from the truth.
fn questions(scores: &Scores) -> Vec<Vec<String>> {
    let items: BTreeMap<&str, &closer_contracts::id::Key> =
        scores.pairs.iter().map(|row| (row.pair.as_str(), &row.record.item)).collect();
    let mut rows = Vec::new();
    for row in &scores.worlds {
        let truth = items.get(row.pair.as_str()).and_then(|item| scores.truths.get(*item));
        let needed = truth.is_some_and(|truth| truth.judge(&crate::step::Step::Ask {}, row.had_item).score > 0);
        for put in &row.outcome.questions {
            let aspects = [
                needed,
                put.specific,
                put.evidence > 0,
                put.alternatives > 1,
                put.says_what_waits,
                put.choice_preserved,
            ];
            let mut fields = vec![row.pair.to_string(), row.world.to_string(), row.repeat.to_string()];
            fields.extend(aspects.map(|holds| if holds { "100" } else { "0" }.to_owned()));
            rows.push(fields);
        }
    }
    rows
}

/// What a call took, as it says itself: from `calls` to `process`.
pub(super) fn usage_fields(end: &AttemptEnd) -> Vec<String> {
    let usage = end.usage.clone().unwrap_or_default();
    let number = |number: Option<u64>| number.map_or_else(|| "unknown".to_owned(), |number| number.to_string());
    let text = |text: Option<&dyn std::fmt::Display>| text.map_or_else(String::new, |text| format!("{text}"));
    vec![
        number(usage.calls),
        number(usage.input_tokens),
        number(usage.output_tokens),
        number(usage.reasoning_tokens),
        number(usage.cached_tokens),
        number(usage.cost_micros),
        text(usage.served_model.as_ref().map(|name| name as _)),
        text(usage.fingerprint.as_ref().map(|name| name as _)),
        text(usage.finish_reason.as_ref().map(|name| name as _)),
        number(end.wall_ms),
        text(end.process.as_ref().map(|process| process as _)),
    ]
}

fn attempts(accounts: &Accounts) -> impl Iterator<Item = Vec<String>> {
    let attempts = accounts.pairs().values().flat_map(|record| &record.attempts);
    attempts.map(|(attempt, end)| {
        let text = |text: Option<&dyn std::fmt::Display>| text.map_or_else(String::new, |text| format!("{text}"));
        let cause = end.as_ref().map_or_else(
            || "under way".to_owned(),
            |end| end.cause.map_or_else(|| "counted".to_owned(), |cause| cause.to_string()),
        );
        let mut fields = vec![
            attempt.pair.to_string(),
            attempt.world.to_string(),
            attempt.repeat.to_string(),
            attempt.attempt.to_string(),
            cause,
            end.as_ref().and_then(|end| end.reason.clone()).unwrap_or_default(),
            text(end.as_ref().and_then(|end| end.answer.as_ref()).map(|digest| digest as _)),
            text(end.as_ref().and_then(|end| end.outcome.as_ref()).map(|digest| digest as _)),
        ];
        fields.extend(usage_fields(end.as_ref().unwrap_or(&AttemptEnd::interrupted())));
        fields
    })
}

fn resources(arms: &[Arm]) -> impl Iterator<Item = Vec<String>> {
    arms.iter().flat_map(|arm| {
        Dimension::ALL.iter().map(|dimension| {
            let taken = arm.taken.of(*dimension);
            vec![
                arm.world.to_string(),
                dimension.to_string(),
                arm.planned.get(dimension).map_or_else(String::new, ToString::to_string),
                taken.shown(),
                taken.unknown.to_string(),
            ]
        })
    })
}
