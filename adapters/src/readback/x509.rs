//! The certificate in a file, as `openssl` reads it.

use super::{Seen, command};
use crate::process::{ProcessLedger, Program};
use closer_contracts::digest::Digest;
use closer_contracts::refs::Target;
use closer_contracts::time::Timestamp;
use closer_contracts::work::TargetVersion;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Contract `x509_file`: parses the certificate in one file beneath a root folder anew.
///
/// Fields: `not_before`, `not_after` (UTC timestamps), `serial`, `subject`, and `public_key_digest`: the digest of the
/// public key as PEM text without line breaks at its ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct X509File {
    /// The folder that targets lie beneath, as an absolute path. The target's address is relative to it.
    pub root: String,
    /// Whose files these are.
    pub account: String,
    /// The program that parses. Default `/usr/bin/openssl`.
    #[serde(default = "openssl")]
    pub openssl: String,
    /// When it is ended, in milliseconds. Default 10 s.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u64,
}

fn openssl() -> String {
    "/usr/bin/openssl".to_owned()
}

const fn deadline_ms() -> u64 {
    10_000
}

pub(super) fn look(contract: &X509File, target: &Target, ledger: &dyn ProcessLedger) -> Result<Seen, String> {
    let options = ["-noout", "-startdate", "-enddate", "-serial", "-subject", "-pubkey", "-nameopt", "RFC2253"];
    let program = Program {
        program: contract.openssl.clone(),
        arguments: ["x509", "-in", "{target}"].iter().chain(&options).map(ToString::to_string).collect(),
        // The language of messages and dates is fixed.
        environment: BTreeMap::from([("LC_ALL".to_owned(), "C".to_owned())]),
        environment_allowed: Vec::new(),
        working_directory: None,
        target_root: Some(contract.root.clone()),
        deadline_ms: contract.deadline_ms,
        output_bytes_max: 65_536,
    };
    let output = command::run(&program, target, ledger)?;
    Ok(Seen {
        account: contract.account.as_str().into(),
        // The serial names a certificate; it is no version of the file.
        version: TargetVersion::Unknown,
        fields: parse(&String::from_utf8_lossy(&output))?,
        limitations: Vec::new(),
    })
}

/// Reads the printed lines. Each must stand exactly once.
fn parse(output: &str) -> Result<Map<String, Value>, String> {
    let one = |name: &str| {
        let mut values = output.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value.trim()),
            (Some(_), Some(_)) => Err(format!("`{name}` was printed more than once")),
            (None, _) => Err(format!("`{name}` was not printed")),
        }
    };
    let key_begins = output.find("-----BEGIN PUBLIC KEY-----");
    let key = key_begins.and_then(|begins| {
        const END: &str = "-----END PUBLIC KEY-----";
        let from = output.get(begins..)?;
        from.get(..from.find(END)?.checked_add(END.len())?)
    });
    let key = key.ok_or_else(|| "no public key was printed".to_owned())?;
    let mut fields = Map::new();
    fields.insert("not_before".to_owned(), json!(date(one("notBefore")?)?));
    fields.insert("not_after".to_owned(), json!(date(one("notAfter")?)?));
    fields.insert("serial".to_owned(), json!(one("serial")?));
    fields.insert("subject".to_owned(), json!(one("subject")?));
    fields.insert("public_key_digest".to_owned(), json!(Digest::of(key.as_bytes())));
    Ok(fields)
}

/// Reads `Jan  2 03:04:05 2027 GMT`.
fn date(text: &str) -> Result<Timestamp, String> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let invalid = || format!("`{text}` is no date as openssl prints it");
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [month, day, time, year, "GMT"] = words.as_slice() else {
        return Err(invalid());
    };
    let month = MONTHS.iter().position(|name| name == month).ok_or_else(invalid)?;
    let day: u8 = day.parse().map_err(|_| invalid())?;
    Timestamp::parse(&format!("{year}-{:02}-{day:02}T{time}Z", month + 1)).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_read_as_utc() {
        assert_eq!(date("Jan  2 03:04:05 2027 GMT").unwrap().as_str(), "2027-01-02T03:04:05Z");
        assert_eq!(date("Dec 31 23:59:59 2099 GMT").unwrap().as_str(), "2099-12-31T23:59:59Z");
        for wrong in [
            "Jan 2 03:04:05 2027",
            "Jan 2 03:04:05 2027 CET",
            "Foo 2 03:04:05 2027 GMT",
            "Feb 30 03:04:05 2027 GMT",
            "",
            "Jan 2 3:04 2027 GMT",
        ] {
            assert!(date(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_printed_twice_is_refused() {
        let output = "notBefore=Jan  2 03:04:05 2027 GMT\nnotAfter=Jan  2 03:04:05 2028 GMT\nserial=01\nsubject=CN=a\n\
                      -----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
        assert_eq!(parse(output).unwrap()["subject"], "CN=a");
        let twice = format!("{output}notAfter=Jan  2 03:04:05 2099 GMT\n");
        assert!(parse(&twice).unwrap_err().contains("more than once"));
        assert!(parse(&output.replace("serial", "cereal")).is_err());
    }

    proptest! {
        #[test]
        fn any_output_is_parsed_or_refused(output in "(notAfter=|serial=|-----BEGIN PUBLIC KEY-----|-|\n|.){0,40}") {
            if let Ok(fields) = parse(&output) {
                prop_assert_eq!(fields.len(), 5);
            }
        }
    }
}
