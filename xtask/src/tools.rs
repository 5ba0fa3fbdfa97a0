//! The programs `verify` needs besides cargo: found, installed by their ordinary installer, or named in one line.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

/// A program, how to ask whether it is there, and how it is installed.
struct Tool {
    name: &'static str,
    probe: &'static [&'static str],
    installer: Installer,
}

enum Installer {
    /// A toolchain component of rustup.
    Component(&'static str),
    /// A Debian package; installed only by root.
    Package(&'static str),
}

const TOOLS: [Tool; 4] = [
    Tool { name: "rustfmt", probe: &["cargo", "fmt", "--version"], installer: Installer::Component("rustfmt") },
    Tool { name: "clippy", probe: &["cargo", "clippy", "--version"], installer: Installer::Component("clippy") },
    Tool { name: "git", probe: &["git", "--version"], installer: Installer::Package("git") },
    Tool { name: "openssl", probe: &["openssl", "version"], installer: Installer::Package("openssl") },
];

/// What the browser tests need besides.
const BROWSER_TOOLS: [Tool; 3] = [
    Tool { name: "chromium", probe: &["chromium", "--version"], installer: Installer::Package("chromium") },
    Tool { name: "node", probe: &["node", "--version"], installer: Installer::Package("nodejs") },
    Tool { name: "npm", probe: &["npm", "--version"], installer: Installer::Package("npm") },
];

/// Makes sure every tool is there.
///
/// # Errors
/// Names, in one line, what is missing and how to get it.
pub(crate) fn ensure() -> Result<()> {
    all(&TOOLS)
}

/// Makes sure that what the browser tests need is there.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_browser() -> Result<()> {
    all(&BROWSER_TOOLS)
}

fn all(tools: &[Tool]) -> Result<()> {
    let missing: Vec<String> = tools
        .iter()
        .filter(|tool| !succeeds(tool.probe))
        .filter(|tool| !(tool.installer.run() && succeeds(tool.probe)))
        .map(|tool| format!("{} (`{}`)", tool.name, tool.installer.by_hand()))
        .collect();
    if !missing.is_empty() {
        bail!("missing: {}", missing.join(", "));
    }
    Ok(())
}

/// Whether `cargo nextest` is there; without it the tests run by `cargo test`.
pub(crate) fn has_nextest() -> bool {
    succeeds(&["cargo", "nextest", "--version"])
}

impl Installer {
    fn run(&self) -> bool {
        println!("tools: running `{}`", self.by_hand());
        match self {
            Self::Component(name) => succeeds(&["rustup", "component", "add", name]),
            Self::Package(name) => {
                rustix::process::geteuid().is_root()
                    && succeeds(&["apt-get", "update", "-qq"])
                    && succeeds(&["apt-get", "install", "-y", "-qq", name])
            }
        }
    }

    fn by_hand(&self) -> String {
        match self {
            Self::Component(name) => format!("rustup component add {name}"),
            Self::Package(name) => format!("apt-get install {name}"),
        }
    }
}

fn succeeds(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let mut command = Command::new(program);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_not_taken_for_present() {
        assert!(succeeds(&["true"]));
        assert!(!succeeds(&["false"]));
        assert!(!succeeds(&["no-program-of-this-name"]));
    }
}
