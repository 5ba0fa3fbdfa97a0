//! From sections to the items a space is founded with.

use super::defaults::{self, Base};
use super::naming;
use super::source::{Misfit, Source};
use closer_contracts::Check;
use closer_contracts::audit::Declaration;
use closer_contracts::canonical::digest_of;
use closer_contracts::fault::Fault;
use closer_contracts::item::Item;
use closer_contracts::obligation::Obligation;
use closer_contracts::profile::Profile;
use closer_contracts::reentry::Reentry;
use closer_contracts::time::Timestamp;
use closer_protocol::genesis::Founding;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The sections whose tables are items as they stand.
const ITEMS: [&str; 17] = [
    "identity",
    "source",
    "readback_method",
    "operation",
    "rule",
    "policy",
    "appointment",
    "goal",
    "constraint",
    "grant",
    "claim",
    "method",
    "dependency",
    "capability",
    "workflow",
    "skill",
    "coalition",
];

/// The other sections that a founding is read from.
const SECTIONS: [&str; 4] = ["profile", "declaration", "reentry", "obligation"];

/// How long a year is for things that are to be looked at again within one.
const YEAR_MS: u64 = 365 * 24 * 3_600_000;

struct Reading<'a> {
    source: &'a Source,
    directory: &'a Path,
    base: Base,
}

pub(super) fn found(
    source: &Source,
    mut file: Map<String, Value>,
    directory: &Path,
    now: &Timestamp,
) -> Result<Founding, Misfit> {
    let known = |section: &str| SECTIONS.contains(&section) || ITEMS.contains(&section);
    if let Some(unknown) = file.keys().find(|section| !known(section)) {
        return Err(source.misfit(unknown.as_str(), "there is no such section; docs/deployment.md lists them"));
    }
    let profile = profile(source, &mut file, directory)?;
    let founding_auth = json!({
        "id": profile.profile_id,
        "digest": digest_of(&profile).map_err(|fault| misfit(source, "profile", &fault))?,
    });
    let base = Base {
        user: profile.user.to_string(),
        scope: json!(profile.scope),
        now: now.as_str().to_owned(),
        in_a_year: now.plus_ms(YEAR_MS).as_str().to_owned(),
        founding_auth,
    };
    let reading = Reading { source, directory, base };
    let declarations: Vec<Declaration> = reading.section(&mut file, "declaration")?;
    let mut items = Vec::new();
    for section in ITEMS {
        let more = reading.items(&mut file, section, &declarations, &items)?;
        items.extend(more);
    }
    items.extend(reading.standard(&items)?);
    let obligations = reading.obligations(&mut file, &declarations, &items)?;
    Ok(Founding { profile, items, declarations, obligations })
}

fn misfit(source: &Source, section: &str, fault: &Fault) -> Misfit {
    let field = match fault.path.as_str() {
        "" => section.to_owned(),
        path => format!("{section}.{path}"),
    };
    source.misfit(field, format!("{}: {}", fault.code.as_str(), fault.reason))
}

fn profile(source: &Source, file: &mut Map<String, Value>, directory: &Path) -> Result<Profile, Misfit> {
    let Some(Value::Object(mut table)) = file.remove("profile") else {
        return Err(source.misfit("profile", "the section `[profile]` with the ten answers is missing"));
    };
    let name = name_of(directory);
    let user = table.get("user").cloned().unwrap_or(Value::Null);
    defaults::fill(
        &mut table,
        json!({
            "profile_id": format!("profile.{name}"), "version": 1, "scope": [name], "mechanisms": ["session"],
            "restrictive_authority": user, "deadline_policy": "policy.deadline", "answers": {},
        }),
    );
    let profile: Profile = source.typed("profile", Value::Object(table))?;
    profile.check().and_then(|()| profile.check_complete()).map_err(|fault| misfit(source, "profile", &fault))?;
    Ok(profile)
}

/// What a deployment is called after its folder, in the characters that an id may have.
fn name_of(directory: &Path) -> String {
    let folder = directory.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-') { c } else { '-' };
    let name: String = folder.chars().map(plain).take(NAME_CHARACTERS_MAX).collect();
    match name.trim_matches('-') {
        "" => "deployment".to_owned(),
        name => name.to_owned(),
    }
}

/// How much of a folder's name goes into ids, which have a few more characters.
const NAME_CHARACTERS_MAX: usize = 64;

/// The tables of a section, each with its field's path.
type Tables = Vec<(String, Map<String, Value>)>;

impl Reading<'_> {
    fn tables(&self, file: &mut Map<String, Value>, section: &str) -> Result<Tables, Misfit> {
        let tables = match file.remove(section) {
            None => return Ok(Vec::new()),
            Some(Value::Array(tables)) => tables,
            Some(Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                return Err(self.source.misfit(section, format!("this is a list: write `[[{section}]]`")));
            }
        };
        let numbered = tables.into_iter().enumerate();
        numbered
            .map(|(index, table)| match table {
                Value::Object(table) => Ok((format!("{section}.{index}"), table)),
                Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                    Err(self.source.misfit(format!("{section}.{index}"), "this is a table"))
                }
            })
            .collect()
    }

    fn typed<T: DeserializeOwned + Check>(&self, field: &str, table: Map<String, Value>) -> Result<T, Misfit> {
        let value: T = self.source.typed(field, Value::Object(table))?;
        value.check().map_err(|fault| misfit(self.source, field, &fault))?;
        Ok(value)
    }

    fn section<T: DeserializeOwned + Check>(
        &self,
        file: &mut Map<String, Value>,
        section: &str,
    ) -> Result<Vec<T>, Misfit> {
        let tables = self.tables(file, section)?.into_iter();
        tables
            .map(|(field, mut table)| {
                defaults::complete(section, &mut table, &self.base);
                self.typed(&field, table)
            })
            .collect()
    }

    fn items(
        &self,
        file: &mut Map<String, Value>,
        section: &str,
        declarations: &[Declaration],
        before: &[Item],
    ) -> Result<Vec<Item>, Misfit> {
        let mut items = Vec::new();
        for (field, mut table) in self.tables(file, section)? {
            if let Some(contract) = table.get_mut("contract") {
                self.place(&format!("{field}.contract"), contract)?;
            }
            if section == "goal" {
                self.cite_declaration(&field, &mut table, declarations)?;
            }
            if section == "coalition" {
                self.cite_capabilities(&field, &mut table, before)?;
            }
            if section == "identity" {
                self.public_keys(&field, &mut table)?;
            }
            items.push(self.item(&field, section, table)?);
        }
        Ok(items)
    }

    fn item(&self, field: &str, section: &str, mut table: Map<String, Value>) -> Result<Item, Misfit> {
        defaults::complete(section, &mut table, &self.base);
        macro_rules! of {
            ($variant:ident) => {
                Item::$variant(self.typed(field, table)?)
            };
        }
        Ok(match section {
            "identity" => of!(Identity),
            "source" => of!(Source),
            "readback_method" => of!(ReadbackMethod),
            "operation" => of!(Operation),
            "rule" => of!(Rule),
            "policy" => of!(Policy),
            "appointment" => of!(Appointment),
            "goal" => of!(Goal),
            "constraint" => of!(Constraint),
            "grant" => of!(Grant),
            "claim" => of!(Claim),
            "method" => of!(Method),
            "dependency" => of!(Dependency),
            "capability" => of!(Capability),
            "workflow" => of!(Workflow),
            "skill" => of!(Skill),
            "coalition" => of!(Coalition),
            other => {
                return Err(self.source.misfit(other, "there is no such section; docs/deployment.md lists them"));
            }
        })
    }

    /// Rules, policies and the user's identity, as far as the file does not declare them itself.
    fn standard(&self, declared: &[Item]) -> Result<Vec<Item>, Misfit> {
        let mut items = Vec::new();
        for (section, value) in defaults::standard(&self.base.user) {
            let Value::Object(table) = value else { continue };
            let item = self.item(section, section, table)?;
            let same_kind = |other: &&Item| other.kind() == item.kind();
            let same_rule = |other: &&Item| {
                if let (Item::Rule(own), Item::Rule(other)) = (&item, other) {
                    return std::mem::discriminant(&own.body) == std::mem::discriminant(&other.body);
                }
                other.id() == item.id()
            };
            if !declared.iter().filter(same_kind).any(|other| same_rule(&other)) {
                items.push(item);
            }
        }
        Ok(items)
    }

    /// Puts the id and digest of the named declaration where only its id stands.
    fn cite_declaration(
        &self,
        field: &str,
        table: &mut Map<String, Value>,
        declarations: &[Declaration],
    ) -> Result<(), Misfit> {
        let named = table.get("declaration").and_then(Value::as_str).map(str::to_owned);
        let found = named.as_ref().and_then(|named| declarations.iter().find(|d| d.declaration_id.as_str() == named));
        let Some(declaration) = found else {
            let reason = "name the declaration it comes from: `declaration = \"ID\"` of a `[[declaration]]`";
            return Err(self.source.misfit(format!("{field}.declaration"), reason));
        };
        let digest = digest_of(declaration).map_err(|fault| misfit(self.source, field, &fault))?;
        table.insert("declaration".to_owned(), json!({ "id": declaration.declaration_id, "digest": digest }));
        Ok(())
    }

    /// Puts version and digest of each capability that a member works under where only its id stands.
    fn cite_capabilities(&self, field: &str, table: &mut Map<String, Value>, items: &[Item]) -> Result<(), Misfit> {
        let Some(Value::Array(members)) = table.get_mut("members") else {
            return Ok(());
        };
        for (index, member) in members.iter_mut().enumerate() {
            let Some(Value::Array(cited)) = member.get_mut("capabilities") else { continue };
            for named in cited.iter_mut().filter(|named| named.is_string()) {
                let known = items.iter().filter_map(Item::as_capability);
                let found = known.into_iter().find(|known| named.as_str() == Some(known.capability_id.as_str()));
                let Some(found) = found else {
                    let place = format!("{field}.members.{index}.capabilities");
                    return Err(self.source.misfit(place, format!("there is no `[[capability]]` {named}")));
                };
                *named =
                    json!({ "id": found.capability_id, "version": found.version, "digest": found.contract_digest });
            }
        }
        Ok(())
    }

    /// Derives each key's id from the key itself.
    fn public_keys(&self, field: &str, table: &mut Map<String, Value>) -> Result<(), Misfit> {
        let Some(Value::Array(keys)) = table.get_mut("keys") else {
            return Ok(());
        };
        for (index, key) in keys.iter_mut().enumerate() {
            let place = format!("{field}.keys.{index}.public_key");
            let Some(key) = key.as_object_mut() else { continue };
            let text = key.get("public_key").and_then(Value::as_str).unwrap_or_default();
            let id = crate::keys::id_of(text).map_err(|reason| self.source.misfit(place, reason))?;
            key.entry("key_id").or_insert(json!(id));
        }
        Ok(())
    }

    /// Makes paths in a contract absolute: `./` counts from the deployment, a bare program is looked up once, now.
    fn place(&self, field: &str, contract: &mut Value) -> Result<(), Misfit> {
        match contract {
            Value::String(text) => {
                if let Some(inner) = text.strip_prefix("./") {
                    *text = self.directory.join(inner).to_string_lossy().into_owned();
                }
                Ok(())
            }
            Value::Object(members) => members.iter_mut().try_for_each(|(name, member)| {
                let field = format!("{field}.{name}");
                if let (true, Value::String(text)) = (matches!(name.as_str(), "program" | "openssl"), &mut *member) {
                    let found = super::process::absolute_program(text, self.directory);
                    *text = found.map_err(|reason| self.source.misfit(&field, reason))?;
                }
                self.place(&field, member)
            }),
            Value::Array(items) => {
                let mut numbered = items.iter_mut().enumerate();
                numbered.try_for_each(|(index, item)| self.place(&format!("{field}.{index}"), item))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// The triggers, with the names of observation streams put where `METHOD TYPE ACCOUNT ADDRESS` stands.
    fn reentries(&self, file: &mut Map<String, Value>, items: &[Item]) -> Result<Vec<Reentry>, Misfit> {
        let tables = self.tables(file, "reentry")?.into_iter();
        tables
            .map(|(field, mut table)| {
                if let Some(predicate) = table.get_mut("predicate") {
                    naming::streams(predicate, items)
                        .map_err(|reason| self.source.misfit(format!("{field}.predicate"), reason))?;
                }
                defaults::complete("reentry", &mut table, &self.base);
                self.typed(&field, table)
            })
            .collect()
    }

    fn obligations(
        &self,
        file: &mut Map<String, Value>,
        declarations: &[Declaration],
        items: &[Item],
    ) -> Result<Vec<(Obligation, Vec<Reentry>)>, Misfit> {
        let mut triggers: BTreeMap<String, (usize, Vec<Reentry>)> = BTreeMap::new();
        for (index, reentry) in self.reentries(file, items)?.into_iter().enumerate() {
            triggers.entry(reentry.obligation_id.to_string()).or_insert_with(|| (index, Vec::new())).1.push(reentry);
        }
        let mut obligations = Vec::new();
        for (field, mut table) in self.tables(file, "obligation")? {
            self.cite_declaration(&field, &mut table, declarations)?;
            let declaration = table.remove("declaration").unwrap_or(Value::Null);
            defaults::fill(&mut table, json!({ "origin": { "declaration": declaration } }));
            let id = table.get("obligation_id").and_then(Value::as_str).unwrap_or_default().to_owned();
            let (_, own) = triggers.remove(&id).unwrap_or_default();
            let listed: Vec<_> = own.iter().map(|reentry| &reentry.reentry_id).collect();
            defaults::fill(&mut table, json!({ "reentry_refs": listed }));
            defaults::complete("obligation", &mut table, &self.base);
            obligations.push((self.typed(&field, table)?, own));
        }
        naming::compare_with_founded(&mut obligations).map_err(|fault| misfit(self.source, "reentry", &fault))?;
        match triggers.iter().next() {
            None => Ok(obligations),
            Some((id, (index, _))) => {
                let reason = format!("no obligation is called `{id}`: declare it (`[[obligation]]`) or name another");
                Err(self.source.misfit(format!("reentry.{index}.obligation_id"), reason))
            }
        }
    }
}
