//! Runs scenarios of the catalogue by name.

use std::path::Path;

use anyhow::{Result, bail};

use crate::cargo::{cargo, must};
use crate::trace::scenario_names;

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Args {
    /// A scenario by its path below scenarios/catalog, or the last part of it
    name: Option<String>,
    /// Lists the scenarios
    #[arg(long)]
    list: bool,
}

/// Lists the scenarios or runs the chosen ones through the catalogue test of `closer-scenarios`.
///
/// # Errors
/// When no scenario has the name, or one fails.
pub(crate) fn run(root: &Path, args: &Args) -> Result<()> {
    let names = scenario_names(root)?;
    let Some(wanted) = &args.name else {
        names.iter().for_each(|name| println!("{name}"));
        return Ok(());
    };
    let chosen = choose(&names, wanted);
    if chosen.is_empty() {
        bail!("no scenario is called `{wanted}`; `cargo xtask scenario --list` shows all");
    }
    for name in chosen {
        let mut command = cargo(root);
        command.env("CLOSER_SCENARIO", name);
        command.args([
            "test",
            "--package=closer-scenarios",
            "--test=catalog",
            "--",
            "--exact",
            "catalog",
            "--nocapture",
        ]);
        must(&mut command)?;
    }
    Ok(())
}

/// The scenario with this path, else those whose last part it is.
fn choose<'a>(names: &'a [String], wanted: &str) -> Vec<&'a str> {
    let by =
        |test: &dyn Fn(&str) -> bool| names.iter().map(String::as_str).filter(|name| test(name)).collect::<Vec<_>>();
    let exact = by(&|name| name == wanted);
    if exact.is_empty() { by(&|name| name.rsplit('/').next() == Some(wanted)) } else { exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_wins_over_a_last_part() {
        let names = ["late", "fault/late", "fault/lost"].map(str::to_owned);
        assert_eq!(choose(&names, "late"), ["late"]);
        assert_eq!(choose(&names, "lost"), ["fault/lost"]);
        assert_eq!(choose(&names, "fault"), Vec::<&str>::new());
    }
}
