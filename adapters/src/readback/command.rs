//! What a program says about a target.

use super::Seen;
use crate::process::{Finished, ProcessLedger, Program};
use closer_contracts::canonical;
use closer_contracts::id::AttemptId;
use closer_contracts::refs::Target;
use closer_contracts::work::TargetVersion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Contract `command`: runs a program that looks at the target and prints one JSON object.
///
/// The object must be strict JSON without fractions and repeated members. Its members are the fields. An exit status
/// other than 0 makes the target unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandOutput {
    /// What is run. Only `{target}` and `{account}` can stand in its arguments.
    pub run: Program,
    /// The member that says whose the target is; without it the look establishes nothing.
    pub account_member: String,
    /// The member that states the target's own version. Default: none; the version is unknown.
    #[serde(default)]
    pub version_member: Option<String>,
}

pub(super) fn look(contract: &CommandOutput, target: &Target, ledger: &dyn ProcessLedger) -> Result<Seen, String> {
    let output = run(&contract.run, target, ledger)?;
    let Value::Object(fields) = canonical::read_value(&output).map_err(|fault| fault.to_string())? else {
        return Err("the program did not print one JSON object".to_owned());
    };
    let member = |name: &str| fields.get(name).and_then(Value::as_str);
    let account = member(&contract.account_member)
        .ok_or_else(|| format!("the output does not say in `{}` whose the target is", contract.account_member))?;
    let version = contract.version_member.as_deref().and_then(member);
    Ok(Seen {
        account: account.into(),
        version: version.map_or(TargetVersion::Unknown, |version| TargetVersion::Known(version.into())),
        fields: fields.clone(),
        limitations: Vec::new(),
    })
}

/// Runs a program that looks, under a mark of its own, and gives the whole of what it printed.
pub(super) fn run(program: &Program, target: &Target, ledger: &dyn ProcessLedger) -> Result<Vec<u8>, String> {
    let none = |name: &str| Err(format!("a readback has no parameter `{name}`"));
    let arguments = program.fill(target, &none)?;
    let look_id = AttemptId::from(format!("look-{}", uuid::Uuid::now_v7()));
    match program.run(&arguments, &look_id, ledger) {
        Finished::NotStarted(reason) | Finished::Killed(reason) => Err(reason),
        Finished::Exited { status: 0, stdout, .. } if !stdout.is_cut() => Ok(stdout.bytes),
        Finished::Exited { status: 0, stdout, .. } => {
            Err(format!("the program printed {} bytes, more than are read", stdout.total))
        }
        Finished::Exited { status, stderr, .. } => {
            let said = crate::said(&stderr.bytes).map(|said| format!(": {said}")).unwrap_or_default();
            Err(format!("the program ended with status {status}{said}"))
        }
    }
}
