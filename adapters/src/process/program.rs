//! A program as a contract declares it: an argument list, never a line for a shell.

use super::ledger::ProcessLedger;
use super::run::{Finished, Spawn, run};
use crate::confine::Root;
use crate::declared::{Names, absolute, positive};
use crate::template::{Piece, pieces};
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::id::AttemptId;
use closer_contracts::refs::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The placeholder that stands for the target.
const TARGET: &str = "target";
/// The longest argument, in bytes.
const ARGUMENT_BYTES_MAX: usize = 65_536;

/// A declared program. `{target}`, `{account}` and `{name}` in an argument stand for the target's address, its account
/// and a parameter; each value stays within the one argument it stands in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program, as an absolute path: no search path is consulted.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables that are set.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Environment variables that are handed on from the runtime's own where it has them. All others are withheld.
    #[serde(default)]
    pub environment_allowed: Vec<String>,
    /// The folder it runs in, as an absolute path. Default: `/`.
    #[serde(default)]
    pub working_directory: Option<String>,
    /// The folder that targets lie beneath, as an absolute path. `{target}` is then the whole path, checked to lie there
    /// and to go through no symbolic link; so is every path that an argument makes of it, such as `{target}.key`.
    /// Default: none; `{target}` is the address as it stands.
    #[serde(default)]
    pub target_root: Option<String>,
    /// When it is ended with its descendants, in milliseconds. Default 30 s.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u64,
    /// How much of each of its outputs is kept, in bytes; at most 65,536. Default 16 KiB.
    #[serde(default = "output_bytes_max")]
    pub output_bytes_max: usize,
}

/// The longest deadline, in milliseconds: below the time after which the runtime itself calls an effect unknown.
const DEADLINE_MS_MAX: u64 = 540_000;

const fn deadline_ms() -> u64 {
    30_000
}

const fn output_bytes_max() -> usize {
    16_384
}

/// The most that any contract can ask to keep of an output, in bytes.
const OUTPUT_BYTES_CEILING: usize = 65_536;

impl Program {
    /// Whether it can be started for some target, by placeholders that name something.
    pub(crate) fn check(&self, names: Names<'_>) -> Result<(), Fault> {
        absolute(&self.program, "program")?;
        for (index, argument) in self.arguments.iter().enumerate() {
            let told = |reason: String| Fault::schema(reason).within(index).within("arguments");
            names.template(argument).map_err(told)?;
        }
        self.working_directory.as_ref().map_or(Ok(()), |folder| absolute(folder, "working_directory"))?;
        self.target_root.as_ref().map_or(Ok(()), |root| absolute(root, "target_root"))?;
        positive(self.deadline_ms, "deadline_ms")
    }

    /// Fills the arguments for one target. Parameters come from `parameter`.
    pub(crate) fn fill(
        &self,
        target: &Target,
        parameter: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Vec<String>, String> {
        let root = self.target_root.as_deref().map(Root::open).transpose()?;
        let confined = |address: &str| match &root {
            Some(root) => {
                let place = root.place(address)?;
                place.require_regular().map(|()| place.path)
            }
            None => Ok(address.to_owned()),
        };
        let address = target.address.as_str();
        let path = confined(address)?;
        let value = |name: &str| match name {
            TARGET => Ok(path.clone()),
            "account" => Ok(target.account.to_string()),
            name => parameter(name),
        };
        let fill = |argument: &String| {
            let filled = fill(argument, &value)?;
            made_of(address, argument, &value)?.iter().try_for_each(|made| confined(made).map(drop))?;
            Ok(filled)
        };
        self.arguments.iter().map(fill).collect()
    }

    /// Starts the program with filled arguments and waits for its end. Blocks.
    pub(crate) fn run(&self, arguments: &[String], attempt_id: &AttemptId, ledger: &dyn ProcessLedger) -> Finished {
        if !self.program.starts_with('/') {
            return Finished::NotStarted(format!("the program `{}` is not an absolute path", self.program));
        }
        let allowed =
            self.environment_allowed.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
        let environment = allowed.chain(self.environment.clone()).collect();
        run(
            &Spawn {
                program: &self.program,
                arguments,
                environment: &environment,
                working_directory: Path::new(self.working_directory.as_deref().unwrap_or("/")),
                deadline: Duration::from_millis(self.deadline_ms.min(DEADLINE_MS_MAX)),
                output_bytes_max: self.output_bytes_max.min(OUTPUT_BYTES_CEILING),
                attempt_id,
            },
            ledger,
        )
    }
}

/// The addresses that an argument makes of the target's: what follows the placeholder belongs to it, up to the next one.
fn made_of(
    address: &str,
    argument: &str,
    value: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let mut made: Vec<String> = Vec::new();
    for piece in pieces(argument)? {
        match (piece, made.last_mut()) {
            (Piece::Placeholder(TARGET), _) => made.push(address.to_owned()),
            (Piece::Literal(text), Some(last)) => last.push_str(&text),
            (Piece::Placeholder(name), Some(last)) => last.push_str(&value(name)?),
            (Piece::Literal(_) | Piece::Placeholder(_), None) => {}
        }
    }
    Ok(made)
}

/// Whether a path has a part that leads out of its folder.
fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

fn fill(argument: &str, value: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let (mut filled, mut declared) = (String::new(), String::new());
    for (index, piece) in pieces(argument)?.into_iter().enumerate() {
        match piece {
            Piece::Literal(text) => {
                filled.push_str(&text);
                declared.push_str(&text);
            }
            Piece::Placeholder(name) => {
                let value = value(name)?;
                // At the head of an argument, outside data could turn itself into an option.
                if branch!("program.value_is_no_option", index == 0 && value.starts_with('-')) {
                    return Err(format!("the value of `{name}` begins with a hyphen and would be read as an option"));
                }
                filled.push_str(&value);
                declared.push_str(name);
            }
        }
    }
    // A path leads upwards where its declaration does, and not because of a value in it.
    if climbs(&filled) && !climbs(&declared) {
        return Err(format!("`{argument}` would lead out of its folder"));
    }
    if filled.contains('\0') {
        return Err("an argument holds a zero byte".to_owned());
    }
    match filled.len() <= ARGUMENT_BYTES_MAX {
        true => Ok(filled),
        false => Err(format!("an argument has more than {ARGUMENT_BYTES_MAX} bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(argument: &str, value: &str) -> Result<String, String> {
        fill(argument, &|name| match name {
            "x" => Ok(value.to_owned()),
            name => Err(format!("there is no parameter `{name}`")),
        })
    }

    #[test]
    fn a_value_stays_within_its_argument() {
        for hostile in ["a b", "$(id)", "`id`", "a;b", "a\nb", "*", "\"", "'", "{y}", "a|b&c>d"] {
            assert_eq!(check("{x}", hostile).unwrap(), hostile);
            assert_eq!(check("--to={x}!", hostile).unwrap(), format!("--to={hostile}!"));
        }
    }

    #[test]
    fn a_value_leads_no_path_upwards() {
        for hostile in ["..", "../x", "a/../../b", "a/.."] {
            assert!(check("/srv/{x}", hostile).unwrap_err().contains("out of its folder"), "{hostile}");
            assert!(check("{x}/log", hostile).unwrap_err().contains("out of its folder"), "{hostile}");
        }
        assert!(check("/srv/.{x}", ".").unwrap_err().contains("out of its folder"));
        assert_eq!(check("../{x}", "a..b/...").unwrap(), "../a..b/...");
    }

    /// What a file beside the target is called, the argument says; where it leads, the folder decides.
    #[test]
    fn a_path_made_of_the_target_is_confined_as_the_target_is() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("web.pem"), "").unwrap();
        std::os::unix::fs::symlink("../stolen.key", root.join("web.pem.key")).unwrap();
        let fill = |argument: &str, suffix: &str| {
            let program = Program {
                target_root: Some(root.to_str().unwrap().to_owned()),
                ..serde_json::from_value(serde_json::json!({ "program": "/bin/true", "arguments": [argument] }))
                    .unwrap()
            };
            program.fill(&crate::fixture::target("host", "web.pem"), &|_| Ok(suffix.to_owned()))
        };
        let inside = format!("{}/web.pem", root.display());
        assert_eq!(fill("{target}.new", "").unwrap(), [format!("{inside}.new")]);
        assert_eq!(fill("--pair={target}:{target}.new", "").unwrap(), [format!("--pair={inside}:{inside}.new")]);
        for (argument, suffix) in
            [("{target}.key", ""), ("-o{target}.key", ""), ("{target}.{s}", "key"), ("{target},{target}.key", "")]
        {
            assert!(fill(argument, suffix).unwrap_err().contains("symbolic link"), "{argument}");
        }
        for suffix in ["/../../stolen.key", "/..", "x/y"] {
            assert!(fill("{target}{s}", suffix).is_err(), "{suffix}");
        }
    }

    #[test]
    fn a_value_does_not_become_an_option() {
        assert!(check("{x}", "-rf").unwrap_err().contains("option"));
        assert!(check("{x}", "--config=/etc").unwrap_err().contains("option"));
        assert_eq!(check("-n{x}", "-1").unwrap(), "-n-1");
        assert!(check("{x}", "a\0b").unwrap_err().contains("zero byte"));
        assert!(check("{y}", "a").unwrap_err().contains("no parameter"));
        assert!(check("{x", "a").is_err());
    }
}
