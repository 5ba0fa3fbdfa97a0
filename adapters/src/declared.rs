//! What a deployment declares for an adapter: read by its member `kind`, and told by path where it does not fit.
//!
//! Everything that an adapter would refuse at its first use for what is declared is found here before, so that it can be
//! told where it was written. Deliberately lacks the world: no file, program or host is looked for.

use crate::template::{Piece, pieces};
use closer_contracts::fault::Fault;
use closer_contracts::id::Key;
use closer_contracts::item::ParameterRule;
use closer_contracts::refs::TargetPattern;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Shapes of which the member `kind` chooses one. Reading names the member that does not fit.
macro_rules! by_kind {
    ($(#[$doc:meta])* pub enum $name:ident: $what:literal {
        $($(#[$variant_doc:meta])* $kind:literal => $variant:ident($ty:ty)),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        #[serde(tag = "kind")]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $kind)] $variant($ty)),+
        }

        impl $name {
            /// Reads it from a table.
            ///
            /// # Errors
            /// `schema_invalid` with the path of what does not fit; also an unknown `kind`.
            pub fn read(value: &serde_json::Value) -> Result<Self, closer_contracts::fault::Fault> {
                let (kind, members) = crate::declared::kind_of(value, $what, &[$($kind),+])?;
                match kind {
                    $($kind => crate::declared::typed(members).map(Self::$variant),)+
                    other => Err(crate::declared::no_kind(other, $what, &[$($kind),+])),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(deserializer)?;
                Self::read(&value).map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use by_kind;

/// The kind of a declared table, and its other members.
pub(crate) fn kind_of<'a>(value: &'a Value, what: &str, kinds: &[&str]) -> Result<(&'a str, Value), Fault> {
    let Value::Object(members) = value else {
        return Err(Fault::schema(format!("{what} is a table with a `kind`: {}", listed(kinds))));
    };
    match members.get("kind") {
        Some(Value::String(kind)) => {
            let others = members.iter().filter(|(name, _)| *name != "kind");
            let others: Map<String, Value> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
            Ok((kind, Value::Object(others)))
        }
        Some(_) | None => {
            Err(Fault::schema(format!("{what} names its `kind`, one of {}", listed(kinds))).within("kind"))
        }
    }
}

pub(crate) fn no_kind(kind: &str, what: &str, kinds: &[&str]) -> Fault {
    Fault::schema(format!("{what} has no kind `{kind}`; the kinds are {}", listed(kinds))).within("kind")
}

fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Reads a table as a type, naming the member that does not fit.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Fault> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string().replace('[', ".").replace(']', "");
        let fault = Fault::schema(error.into_inner().to_string());
        match path.as_str() {
            "." | "" => fault,
            path => fault.within(path),
        }
    })
}

/// What a placeholder of a contract may name beside target and account: the operation's own parameters; none in a readback.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a>(pub(crate) &'a [ParameterRule]);

impl Names<'_> {
    /// Whether a parameter is declared.
    pub(crate) fn parameter(self, name: &str) -> Result<(), String> {
        match self.0.iter().any(|rule| rule.name == Key::from(name)) {
            true => Ok(()),
            false => Err(format!("there is no parameter `{name}`; {}", self.known())),
        }
    }

    fn known(self) -> String {
        match self.0 {
            [] => "only `{target}` and `{account}` can stand here".to_owned(),
            rules => {
                let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
                format!("beside `{{target}}` and `{{account}}` there are {}", listed(&names))
            }
        }
    }

    /// Whether every placeholder of a template names something.
    pub(crate) fn template(self, template: &str) -> Result<(), String> {
        for piece in pieces(template)? {
            match piece {
                Piece::Literal(_) | Piece::Placeholder("target" | "account") => {}
                Piece::Placeholder(name) => self.parameter(name)?,
            }
        }
        Ok(())
    }
}

/// `Ok` where a member is an absolute path.
pub(crate) fn absolute(path: &str, member: &str) -> Result<(), Fault> {
    match path.starts_with('/') {
        true => Ok(()),
        false => Err(Fault::schema(format!(
            "`{path}` is not an absolute path; in a deployment file, one that begins with `./` counts from its folder"
        ))
        .within(member)),
    }
}

/// `Ok` where a member is more than nothing.
pub(crate) fn positive(count: u64, member: &str) -> Result<(), Fault> {
    match count > 0 {
        true => Ok(()),
        false => Err(Fault::schema("this is at least 1").within(member)),
    }
}

/// `Ok` where a member is a JSON pointer: empty, or parts that each begin with a slash.
pub(crate) fn pointer(text: &str, member: &str) -> Result<(), Fault> {
    match text.is_empty() || text.starts_with('/') {
        true => Ok(()),
        false => Err(Fault::schema(format!("`{text}` is no JSON pointer: it begins with a slash, as in `/{text}`"))
            .within(member)),
    }
}

/// Which targets a contract can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach<'a> {
    /// Whose they are, where the contract says so.
    pub(crate) account: Option<&'a str>,
    /// What their addresses are relative to, where they may not leave it.
    pub(crate) within: Option<&'a str>,
}

impl Reach<'_> {
    /// Whether the contract can reach targets of this pattern; their type is not asked for.
    ///
    /// # Errors
    /// `target_mismatch` at `account` or `address`.
    pub fn covers(&self, targets: &TargetPattern) -> Result<(), Fault> {
        let no = |reason: String, member| {
            Err(Fault::new(closer_contracts::RefusalCode::TargetMismatch, reason).within(member))
        };
        if let Some(own) = self.account {
            let account = targets.account.as_str();
            let fits = account.strip_suffix('*').map_or(account == own, |prefix| own.starts_with(prefix));
            if !fits {
                return no(format!("the account here is `{own}`, not `{account}`"), "account");
            }
        }
        match self.within {
            Some(within) if !is_beneath(targets.address.as_str()) => {
                let reason = format!(
                    "`{}` lies outside {within}: write a plain path below it, without a slash at its head and without `..`",
                    targets.address
                );
                no(reason, "address")
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether an address, or what a pattern begins with, is a plain relative path.
fn is_beneath(address: &str) -> bool {
    let (begun, open) = match address.strip_suffix('*') {
        Some(begun) => (begun, true),
        None => (address, false),
    };
    let (folders, last) = begun.rsplit_once('/').map_or((None, begun), |(folders, last)| (Some(folders), last));
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    folders.is_none_or(|folders| folders.split('/').all(is_plain)) && (open || is_plain(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reach_ends_at_its_root_and_account() {
        let reach = Reach { account: Some("local"), within: Some("the root") };
        let covers = |account: &str, address: &str| {
            let targets = TargetPattern { r#type: "file".into(), account: account.into(), address: address.into() };
            reach.covers(&targets).map_err(|fault| fault.path)
        };
        for (account, address) in [("local", "a"), ("local", "a/b"), ("local", "*"), ("lo*", "a/*"), ("*", "a*")] {
            assert_eq!(covers(account, address), Ok(()), "{account} {address}");
        }
        for address in ["../a", "/a", "a/../b", "a//b", "./a", "a/", "..", "../*", "/*", "a//*"] {
            assert_eq!(covers("local", address), Err("address".to_owned()), "{address}");
        }
        for account in ["other", "x*", "localhost"] {
            assert_eq!(covers(account, "a"), Err("account".to_owned()), "{account}");
        }
        assert_eq!(
            Reach { account: None, within: None }.covers(&TargetPattern {
                r#type: "file".into(),
                account: "any".into(),
                address: "/any/..".into()
            }),
            Ok(())
        );
    }
}
