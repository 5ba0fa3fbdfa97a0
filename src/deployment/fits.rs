//! The checks of the table that need more than a word: contracts, targets, bounds, the store.

use super::declared::Declared;
use super::paths;
use super::process;
use closer_adapters::Reach;
use closer_adapters::operations::OperationContract;
use closer_adapters::participants::ParticipantConfig;
use closer_adapters::readback::ReadbackContract;
use closer_contracts::fault::Fault;
use closer_contracts::item::{OperationEntry, ParameterBound, ParameterType, ReadbackMethod};
use closer_contracts::refs::{Plain, Scope, Target, TargetPattern, VersionedRef};
use closer_contracts::time::Timestamp;
use closer_contracts::work::Comparison;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// A value as its type; what does not fit its type is told where it is read.
fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// A path without `.` and `..`, as it is written.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
        plain
    })
}

/// The store is a folder of its own.
pub(super) fn store(declared: &Declared, value: &Value) -> Result<(), Fault> {
    let text = value.as_str().unwrap_or_default();
    let no = |reason: &str| {
        Err(Fault::schema(format!("{reason}; name a folder that holds nothing else, such as `var/store`")))
    };
    let store = plain(&declared.directory.join(text));
    if text.trim().is_empty() || plain(&declared.directory).starts_with(&store) {
        return no("this is the deployment's own folder or one around it");
    }
    if store == plain(&declared.directory.join(super::FILE)) {
        return no("this is the deployment file itself");
    }
    match store.ancestors().find(|folder| folder.is_file()) {
        Some(file) => no(&format!("`{}` is a file", file.display())),
        None => Ok(()),
    }
}

/// The program is one that can be found and started now, or one that a preparation makes.
pub(super) fn program(declared: &Declared, value: &Value) -> Result<(), Fault> {
    use std::os::unix::fs::PermissionsExt;
    let text = match value.as_str() {
        Some("") => return Err(Fault::schema("name a program")),
        Some(text) => text,
        None => return Ok(()),
    };
    let program = PathBuf::from(process::absolute_program(text, &declared.directory).map_err(Fault::schema)?);
    let prepared = paths::find(&declared.file, "prepare.*.creates").into_iter().any(|(_, made)| {
        made.as_str().is_some_and(|made| plain(&program).starts_with(plain(&declared.directory.join(made))))
    });
    let no = |reason: &str| {
        let shown = program.display();
        Err(Fault::schema(format!("{reason} `{shown}`; name a program that is installed, or by `./` from this file")))
    };
    if prepared {
        return Ok(());
    }
    match std::fs::metadata(&program) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Ok(()),
        Ok(_) => no("nothing that can be run lies at"),
        Err(_) => no("there is no program at"),
    }
}

/// A scope lies in the space's outermost one, or around it.
pub(super) fn scope(declared: &Declared, _: &str, value: &Value) -> Result<(), Fault> {
    let outermost: Option<Scope> = declared.at("profile.scope").and_then(read);
    match outermost.zip(read::<Scope>(value)) {
        Some((outermost, scope)) if !outermost.contains(&scope) && !scope.contains(&outermost) => {
            let path = outermost.0.iter().map(|step| format!("\"{step}\"")).collect::<Vec<_>>().join(", ");
            Err(Fault::schema(format!("this lies outside the profile's scope; begin it with {path}")))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn readback_contract(_: &Declared, value: &Value) -> Result<(), Fault> {
    ReadbackContract::read(value)?.check()
}

pub(super) fn operation_contract(declared: &Declared, path: &str, value: &Value) -> Result<(), Fault> {
    let contract = OperationContract::read(value)?;
    match declared.at(paths::outer(path)).and_then(read::<OperationEntry>) {
        Some(entry) => contract.check(&entry),
        None => Ok(()),
    }
}

/// The method is declared at this version, and looks at targets of the operation's type.
pub(super) fn readback_method(declared: &Declared, path: &str, value: &Value) -> Result<(), Fault> {
    let Some(reference) = read::<VersionedRef>(value) else { return Ok(()) };
    let named: Vec<&ReadbackMethod> =
        declared.readback_methods().filter(|method| method.method.as_str() == reference.id.as_str()).collect();
    let Some(method) = named.iter().find(|method| method.version == reference.version) else {
        let versions: Vec<String> = named.iter().map(|method| method.version.to_string()).collect();
        return match versions.is_empty() {
            true => declared.named(&[super::declared::Kind::ReadbackMethod], reference.id.as_str()),
            false => Err(Fault::schema(format!(
                "`{}` is declared at version {}, not {}",
                reference.id,
                versions.join(", "),
                reference.version
            ))),
        };
    };
    let target_type = declared.at(paths::outer(path)).and_then(|table| table.get("target_type")?.as_str());
    match target_type.is_none_or(|target_type| target_type == method.target_type.as_str()) {
        true => Ok(()),
        false => Err(Fault::schema(format!(
            "`{}` looks at targets of type `{}`, and the operation's are `{}`: no effect of it could be read back",
            method.method,
            method.target_type,
            target_type.unwrap_or_default()
        ))),
    }
}

pub(super) fn identifying_parameter(declared: &Declared, path: &str, value: &Value) -> Result<(), Fault> {
    let entry: Option<OperationEntry> = declared.at(paths::outer(paths::outer(path))).and_then(read);
    let Some((entry, name)) = entry.zip(value.as_str()) else { return Ok(()) };
    match entry.parameters.iter().any(|rule| rule.name.as_str() == name) {
        true => Ok(()),
        false => Err(Fault::schema(no_parameter(&entry, name))),
    }
}

fn no_parameter(entry: &OperationEntry, name: &str) -> String {
    let declared = match entry.parameters.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {}", listed(entry.parameters.iter().map(|rule| rule.name.as_str()))),
    };
    format!("`{}` has no parameter `{name}`; {declared}", entry.operation)
}

/// The rule is declared at this version, and says when evidence suffices.
pub(super) fn sufficiency_rule(declared: &Declared, _: &str, value: &Value) -> Result<(), Fault> {
    let Some(reference) = read::<VersionedRef>(value) else { return Ok(()) };
    let is_it = |(id, version): (&str, u32)| id == reference.id.as_str() && version == reference.version;
    match declared.sufficiency_rules().any(is_it) {
        true => Ok(()),
        false => Err(Fault::schema(format!(
            "no sufficiency rule `{}` is declared at version {}: declare it (`[[rule]]`) or name another; there are {}",
            reference.id,
            reference.version,
            listed(declared.sufficiency_rules().map(|(id, _)| id))
        ))),
    }
}

/// What a bound leaves is some value that the parameter can have.
pub(super) fn bound(declared: &Declared, path: &str, value: &Value) -> Result<(), Fault> {
    let Some(bound) = read::<ParameterBound>(value) else { return Ok(()) };
    let Some(operation) = declared.operation(&bound.operation) else { return Ok(()) };
    let covered = operations(declared, paths::outer(paths::outer(path)));
    if !covered.iter().any(|covered| covered.operation == bound.operation) {
        let reason = format!("`{}` is none of the operations here, so that nothing is bounded", bound.operation);
        return Err(Fault::schema(reason).within("operation"));
    }
    let Some(rule) = operation.parameters.iter().find(|rule| rule.name == bound.parameter) else {
        return Err(Fault::schema(no_parameter(operation, bound.parameter.as_str())).within("parameter"));
    };
    let limits = [("at_least", bound.at_least), ("at_most", bound.at_most)];
    let limit = limits.iter().find(|(_, limit)| limit.is_some());
    if let Some((member, _)) = limit.filter(|_| !matches!(rule.r#type, ParameterType::Integer | ParameterType::Any)) {
        let reason = format!("`{}` is no integer, so that nothing lies within this", bound.parameter);
        return Err(Fault::schema(reason).within(member));
    }
    if let (Some(least), Some(most)) = (bound.at_least, bound.at_most)
        && least > most
    {
        let reason = format!("no value is at least {least} and at most {most}");
        return Err(Fault::schema(reason).within("at_most"));
    }
    match &bound.one_of {
        Some(allowed) if !allowed.iter().any(|value| bound.admits(Some(value)) && is_of(rule.r#type, value)) => {
            let reason = format!("none of these is a value that `{}` may have", bound.parameter);
            Err(Fault::schema(reason).within("one_of"))
        }
        Some(_) | None => Ok(()),
    }
}

fn is_of(parameter: ParameterType, Plain(value): &Plain) -> bool {
    match parameter {
        ParameterType::Text | ParameterType::Digest | ParameterType::Timestamp => value.is_string(),
        ParameterType::Integer => value.is_i64() || value.is_u64(),
        ParameterType::Boolean => value.is_boolean(),
        ParameterType::Any => true,
    }
}

/// The operations that a grant, constraint, appointment or restriction is about: those it names, or all.
fn operations<'a>(declared: &'a Declared, table: &str) -> Vec<&'a OperationEntry> {
    let table = declared.at(table);
    let names = ["allowed_operations", "operations"].iter().find_map(|list| table?.get(*list)?.as_array());
    let mut named: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    named.extend(table.and_then(|table| table.get("operation")?.as_str()));
    let is_named = |entry: &&OperationEntry| named.is_empty() || named.contains(&entry.operation.as_str());
    declared.operations().filter(is_named).collect()
}

/// Some operation that the table is about can reach the targets.
pub(super) fn targets(declared: &Declared, path: &str, value: &Value) -> Result<(), Fault> {
    let Some(targets) = read::<TargetPattern>(value) else { return Ok(()) };
    // `targets.N` of a list, or `targets` itself.
    let outer = paths::outer(path);
    let table = if outer.ends_with(".targets") { paths::outer(outer) } else { outer };
    let entries = operations(declared, table);
    let kinds =
        entries.iter().map(|entry| (entry.target_type.as_str(), OperationContract::read(&entry.contract.0).ok()));
    let kinds: Vec<_> = kinds.collect();
    reached(&targets, &kinds, |contract| contract.reach())
}

/// Some readback method can show what a rule demands to be shown.
pub(super) fn shown_targets(declared: &Declared, _: &str, value: &Value) -> Result<(), Fault> {
    let Some(targets) = read::<TargetPattern>(value) else { return Ok(()) };
    let methods = declared.readback_methods();
    let kinds = methods.map(|method| (method.target_type.as_str(), ReadbackContract::read(&method.contract.0).ok()));
    let kinds: Vec<_> = kinds.collect();
    reached(&targets, &kinds, |contract| contract.reach())
}

/// Whether one of these contracts reaches the targets. What cannot be read is told at the contract.
fn reached<C>(targets: &TargetPattern, kinds: &[(&str, Option<C>)], reach: fn(&C) -> Reach<'_>) -> Result<(), Fault> {
    let own: Vec<&Option<C>> =
        kinds.iter().filter(|(kind, _)| *kind == targets.r#type.as_str()).map(|(_, contract)| contract).collect();
    if own.is_empty() && !kinds.is_empty() {
        let reason = format!(
            "nothing here has targets of type `{}`; there are {}",
            targets.r#type,
            listed(kinds.iter().map(|(kind, _)| *kind))
        );
        return Err(Fault::schema(reason).within("type"));
    }
    let covers = |contract: &&Option<C>| contract.as_ref().map_or(Ok(()), |contract| reach(contract).covers(targets));
    let first = own.first().map_or(Ok(()), covers);
    match own.iter().any(|contract| covers(contract).is_ok()) {
        true => Ok(()),
        false => first,
    }
}

/// The method can look at the target.
pub(super) fn observed_target(declared: &Declared, _: &str, value: &Value) -> Result<(), Fault> {
    let target: Option<Target> = value.get("target").and_then(read);
    let name = value.get("method").and_then(Value::as_str);
    let method = declared.readback_methods().find(|method| Some(method.method.as_str()) == name);
    let Some((target, method)) = target.zip(method) else { return Ok(()) };
    let contract = ReadbackContract::read(&method.contract.0).ok();
    let kinds = [(method.target_type.as_str(), contract)];
    let covered = reached(&TargetPattern::exactly(&target), &kinds, |contract| contract.reach());
    covered.map_err(|fault| fault.within("target"))
}

/// The source announces changes of this kind.
pub(super) fn observed_change(declared: &Declared, _: &str, value: &Value) -> Result<(), Fault> {
    let text = |member: &str| value.get(member).and_then(Value::as_str);
    let source = text("source_id").and_then(|id| declared.source(id));
    let Some((source, kind)) = source.zip(text("change_kind")) else { return Ok(()) };
    match source.change_kinds.iter().any(|declared| declared.as_str() == kind) {
        true => Ok(()),
        false => {
            let reason = format!("`{}` does not declare `{kind}`: add it to its `change_kinds`", source.source_id);
            Err(Fault::schema(reason).within("change_kind"))
        }
    }
}

/// The participant's own rules can be followed.
pub(super) fn participant(_: &Declared, value: &Value) -> Result<(), Fault> {
    let mut table = value.as_object().cloned().unwrap_or_default();
    table.remove("identity");
    ParticipantConfig::read(&Value::Object(table))?.check()
}

/// Of the tests in a list, no two on one field exclude each other.
pub(super) fn agreement(_: &Declared, value: &Value) -> Result<(), Fault> {
    let tests: Vec<(usize, &str, Comparison, &Value)> = value
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(index, test)| {
            Some((index, test.get("field")?.as_str()?, read(test.get("comparison")?)?, test.get("value")?))
        })
        .collect();
    for (at, (index, field, comparison, value)) in tests.iter().enumerate() {
        let earlier = tests.iter().take(at).filter(|(_, other, _, _)| other == field);
        for (_, _, other, bound) in earlier {
            if excludes((*comparison, value), (*other, bound)) {
                let reason = format!("nothing is `{comparison}` {value} and `{other}` {bound} at once");
                return Err(Fault::schema(reason).within("value").within(index));
            }
        }
    }
    Ok(())
}

/// What a comparison leaves: the least and the greatest value, as far as it says.
fn range(comparison: Comparison, value: &Value) -> Option<(i64, i64)> {
    let time = || Some(Timestamp::parse(value.as_str()?).ok()?.unix_ms());
    match comparison {
        Comparison::Equals => value.as_i64().or_else(time).map(|at| (at, at)),
        Comparison::AtLeast => value.as_i64().map(|least| (least, i64::MAX)),
        Comparison::AtMost => value.as_i64().map(|most| (i64::MIN, most)),
        Comparison::NotBefore => time().map(|least| (least, i64::MAX)),
        Comparison::NotAfter => time().map(|most| (i64::MIN, most)),
    }
}

fn excludes((one, value): (Comparison, &Value), (other, bound): (Comparison, &Value)) -> bool {
    let is_draft = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
    if (one, other) == (Comparison::Equals, Comparison::Equals) {
        let literal = |value: &Value| !value.is_array() && !value.is_object() && !is_draft(value);
        return literal(value) && literal(bound) && value != bound;
    }
    match (range(one, value), range(other, bound)) {
        (Some((least, most)), Some((low, high))) => least.max(low) > most.min(high),
        (Some(_) | None, Some(_) | None) => false,
    }
}
