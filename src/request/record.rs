//! Receipts, and the log as a whole.

use super::{Answer, Outcome, words};
use crate::error::Error;
use crate::space::Space;
use closer_contracts::id::ActorId;
use closer_contracts::refs::StateRef;
use closer_contracts::refusal::{CheckKind, Denial, RefusalCode};
use closer_protocol::view::View;
use closer_store::{Corruption, Log, Progress, RecordLog, Remainder, StoreError};
use serde_json::json;
use std::path::Path;

pub(super) fn receipt(view: &View, asked: &str) -> Answer {
    let by_version = asked.parse::<u64>().ok();
    let found = view.commits.iter().find(|(version, committed)| {
        let named = committed.receipt.as_ref().is_some_and(|receipt| receipt.receipt_id.as_str() == asked);
        named || by_version == Some(**version)
    });
    let Some((_, committed)) = found else {
        return Answer::not_found("receipt", asked);
    };
    let Some(receipt) = &committed.receipt else {
        return Answer::not_found("receipt", asked);
    };
    let mut text = vec![
        format!("{}", receipt.receipt_id),
        format!("  delta       {}   {} path", receipt.delta_id, receipt.admission_path),
        format!(
            "  before      version {} {}",
            receipt.before_state.version,
            words::short(&receipt.before_state.digest)
        ),
        format!("  after       version {} {}", receipt.after_state.version, words::short(&receipt.after_state.digest)),
        format!("  committed   {} by {}", receipt.committed_at.as_str(), receipt.committing_authority),
        format!("  profile     {} version {}", receipt.profile_ref.id, receipt.profile_ref.version),
    ];
    text.extend(
        receipt
            .adjudication_refs
            .iter()
            .map(|reference| format!("  endorsed    {} {}", reference.id, words::short(&reference.digest))),
    );
    text.extend(
        receipt.invalidated_dependencies.items.iter().map(|item| format!("  invalidated {} {}", item.kind, item.id)),
    );
    if let Some(urgent) = &receipt.urgent_details {
        text.push(format!("  urgent      {}: {}", words::scope(&urgent.affected_scope), urgent.reason));
        text.push(format!(
            "  reconcile   {} by {}",
            urgent.reconciliation_obligation_id,
            urgent.reconciliation_due_at.as_str()
        ));
    }
    Answer::done(json!({ "receipt": &**receipt, "changes": committed.commit.delta.changes }), text)
}

/// Walks everything on disk and folds it again; `held` is the state that somebody holds in memory, to be compared.
///
/// # Errors
/// What kept the log from being walked; damage is an [`Answer`].
pub fn verify(log: &Log, held: Option<StateRef>, progress: &mut dyn FnMut(Progress)) -> Result<Answer, Error> {
    let walked = match log.verify(progress) {
        Ok(walked) => walked,
        Err(StoreError::Corruption(damage)) => return Ok(damaged(&damage)),
        Err(error) => return Err(error.into()),
    };
    let folded = match closer_actors::replay(log) {
        Ok(view) => view.state.reference(),
        Err(closer_actors::Error::Store(StoreError::Corruption(damage))) => return Ok(damaged(&damage)),
        Err(error) => return Err(error.into()),
    };
    // Something may have been committed between the two looks; what was accepted before must still be so.
    let agrees = held.is_none_or(|held| folded == held || folded.version > held.version);
    let data = json!({
        "records": walked.records, "segments": walked.segments, "bytes": walked.bytes, "heads": walked.heads,
        "chain": walked.chain, "state": folded, "agrees": agrees,
    });
    if !agrees {
        let text = "the accepted state in memory is not what the records fold to".to_owned();
        return Ok(Answer::new(Outcome::Corruption, data, vec![text]));
    }
    let text = vec![
        format!(
            "{} records in {} segments, {} bytes: every one is what was written",
            walked.records, walked.segments, walked.bytes
        ),
        format!("state version {} {} is what the records fold to", folded.version, words::short(&folded.digest)),
    ];
    Ok(Answer::done(data, text))
}

/// As [`verify`], of a store that nobody holds; nothing there is changed.
///
/// # Errors
/// As [`verify`].
pub fn verify_at_rest(store: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Answer, Error> {
    let remainder = Log::remainder(store)?;
    if let Some((remainder, what)) = remainder.as_ref().and_then(|found| Some((found, found.damage?))) {
        let Remainder { segment, offset, next, .. } = *remainder;
        return Ok(damaged(&Corruption { segment, offset, record: Some(next), what }));
    }
    let mut answer = verify(&Log::open_reading(store)?, None, progress)?;
    if answer.outcome != Outcome::Done {
        return Ok(answer);
    }
    if let (Some(found), Some(data)) = (remainder, answer.data.as_object_mut()) {
        data.insert("unacknowledged".to_owned(), json!({ "segment": found.segment, "offset": found.offset }));
        answer.text.push(format!(
            "what stands after the last whole batch, in segment {} at offset {}, is no whole batch; nothing here says that it was acknowledged, and the next run cuts it off",
            found.segment, found.offset
        ));
    }
    Ok(answer)
}

/// Damage on disk, told by its place.
pub(super) fn damaged(damage: &closer_store::Corruption) -> Answer {
    let data = json!({
        "segment": damage.segment, "offset": damage.offset, "record": damage.record.map(|record| record.0), "what": damage.what,
    });
    let text = vec![
        damage.to_string(),
        "nothing was repaired; restore a backup, or decide on the custody of the record".to_owned(),
    ];
    Answer::new(Outcome::Corruption, data, text)
}

/// Throws the derived state away and builds it again from the log.
///
/// # Errors
/// What kept it from being built.
pub fn rebuild(log: &Log, progress: &mut dyn FnMut(u64)) -> Result<Answer, Error> {
    log.rebuild(&mut |cursor| progress(cursor.0))?;
    let state = closer_actors::replay(log)?.state.reference();
    let text = vec![format!("rebuilt; state version {} {}", state.version, words::short(&state.digest))];
    Ok(Answer::done(json!({ "state": state }), text))
}

/// Copies everything durable into a new folder, for the user alone.
///
/// # Errors
/// What kept it from being copied.
pub fn backup(
    space: &dyn Space,
    identity: &ActorId,
    destination: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Answer, Error> {
    if space.view().state.profile().is_none_or(|profile| profile.user != *identity) {
        let reason = "a backup holds everything on record; it is the user's to make";
        let denial = Denial::new(RefusalCode::MissingAuthority, CheckKind::Authority, reason).of(identity);
        return Ok(Answer::refused(&[denial]));
    }
    let manifest = space.log().backup(Path::new(destination), progress)?;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let text = vec![format!("{} files, {bytes} bytes in {destination}", manifest.files.len())];
    Ok(Answer::done(json!({ "destination": destination, "manifest": manifest }), text))
}
