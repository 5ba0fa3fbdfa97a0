//! Founding a space, and restoring one.

use super::exit::Exit;
use super::progress;
use super::talk::Talk;
use crate::deployment::Deployment;
use crate::error::Error;
use crate::request::Answer;
use crate::wiring;
use closer_contracts::time::Timestamp;
use serde_json::json;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, for what is relative to it in a deployment file.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

pub(super) async fn init(directory: &Path, talk: Talk) -> Result<Exit, Error> {
    let deployment = Deployment::load(directory, &now())?;
    match wiring::init(&deployment, &mut |line| talk.say(line)).await {
        Err(error @ Error::Actors(closer_actors::Error::Founded)) => {
            let exit = talk.failed(&error);
            talk.next("go on with", &["run", &directory.to_string_lossy()]);
            return Ok(exit);
        }
        done => done?,
    }
    let founding = &deployment.founding;
    let data = json!({
        "store": deployment.store, "profile": founding.profile.profile_id, "items": founding.items.len(),
        "obligations": founding.obligations.iter().map(|(obligation, _)| &obligation.obligation_id).collect::<Vec<_>>(),
    });
    let text = founding
        .obligations
        .iter()
        .map(|(obligation, _)| format!("{}  {}", obligation.obligation_id, obligation.gap.text));
    Ok(talk.tell(&Answer::done(data, text.collect())))
}

pub(super) fn restore(backup: &Path, destination: &Path, talk: Talk) -> Result<Exit, Error> {
    if !closer_store::is_backup(backup) {
        let shown = backup.to_string_lossy();
        let absent = Answer::absent(format!("there is no backup at {shown}: no manifest.json lies in it"));
        return Ok(talk.tell(&absent.hint("make one with", ["backup", &shown])));
    }
    let copying = progress::spinner("restoring");
    let manifest = closer_store::restore(backup, destination, &mut |bytes| copying.set_position(bytes))?;
    copying.finish_and_clear();
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    let text = format!("{} files, {bytes} bytes in {}", manifest.files.len(), destination.display());
    Ok(talk.tell(&Answer::done(json!({ "destination": destination, "manifest": manifest }), vec![text])))
}
