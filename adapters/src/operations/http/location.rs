//! Where a request goes: fixed by the contract up to the path, filled below it.

use crate::declared::{Names, absolute, positive};
use crate::template::{Piece, pieces};
use closer_contracts::branch;
use closer_contracts::fault::Fault;
use closer_contracts::refs::Target;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::net::IpAddr;

/// An HTTP endpoint. Members that have a default may be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// The address, such as `https://provider.example/accounts/{account}/plan`. `{target}`, `{account}` and `{name}` stand
    /// for the target's address, its account and a parameter, and may stand in the path only. Each fills one part of the
    /// path; the target's address may have several. `http` is accepted to this machine alone.
    pub url: String,
    /// A file that holds a bearer token, as an absolute path; nobody else may read it. Default: none.
    #[serde(default)]
    pub bearer_file: Option<String>,
    /// How long the whole exchange may take, in milliseconds. Default 30 s.
    #[serde(default = "deadline_ms")]
    pub deadline_ms: u64,
    /// The longest body of a response that is read, in bytes; at most 65,536. Default 64 KiB.
    #[serde(default = "response_bytes_max")]
    pub response_bytes_max: usize,
}

const fn deadline_ms() -> u64 {
    30_000
}

const fn response_bytes_max() -> usize {
    65_536
}

impl Location {
    /// Whether it can be filled for some target, by placeholders that name something.
    pub(crate) fn check(&self, names: Names<'_>) -> Result<(), Fault> {
        let any = Target { r#type: "type".into(), account: "account".into(), address: "target".into() };
        let known = |name: &str| names.parameter(name).map(|()| "parameter".to_owned());
        self.fill(&any, &known).map_err(|reason| Fault::schema(reason).within("url"))?;
        self.bearer_file.as_ref().map_or(Ok(()), |file| absolute(file, "bearer_file"))?;
        positive(self.deadline_ms, "deadline_ms")?;
        positive(self.response_bytes_max as u64, "response_bytes_max")
    }

    /// What a target's address lies below, where it stands in the path.
    pub(crate) fn root(&self) -> Option<&str> {
        self.url.split_once("{target}").map(|(root, _)| root)
    }

    /// The address for one target.
    pub(crate) fn fill(
        &self,
        target: &Target,
        parameter: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Url, String> {
        let (scheme, rest) =
            self.url.split_once("://").ok_or_else(|| format!("`{}` is no absolute address", self.url))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut filled = format!("{scheme}://{authority}/");
        if filled.contains(['{', '}', '?', '#', '@', '\\']) {
            return Err(format!("`{}` does not name one fixed host", self.url));
        }
        for piece in pieces(path)? {
            match piece {
                Piece::Literal(text) => filled.push_str(&text),
                Piece::Placeholder("target") => {
                    let parts: Result<Vec<String>, String> = target.address.as_str().split('/').map(part).collect();
                    filled.push_str(&parts?.join("/"));
                }
                Piece::Placeholder("account") => filled.push_str(&part(target.account.as_str())?),
                Piece::Placeholder(name) => filled.push_str(&part(&parameter(name)?)?),
            }
        }
        let url = Url::parse(&filled).map_err(|error| format!("`{filled}` is no address: {error}"))?;
        require_private(&url)?;
        // Parsing must not have moved anything: what was filled in is what is asked for.
        match url.as_str() == filled {
            true => Ok(url),
            false => Err(format!("`{filled}` would be read as `{url}`")),
        }
    }
}

/// One part of a path, with everything escaped that could end it.
fn part(text: &str) -> Result<String, String> {
    if matches!(text, "" | "." | "..") {
        return Err(format!("`{text}` is no part of a path"));
    }
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            true => escaped.push(char::from(byte)),
            false => write!(escaped, "%{byte:02X}").map_err(|error| error.to_string())?,
        }
    }
    Ok(escaped)
}

/// Encrypted, or to this very machine.
pub(crate) fn require_private(url: &Url) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_loopback = address.is_ok_and(|address| address.is_loopback());
    match url.scheme() {
        "https" => Ok(()),
        "http" if branch!("http.plain_to_loopback_only", is_loopback) => Ok(()),
        "http" => Err(format!("`{url}` is not encrypted and does not lead to a loopback address of this machine")),
        scheme => Err(format!("`{scheme}` is not a scheme that requests are sent by")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn location(url: &str) -> Location {
        serde_json::from_value(serde_json::json!({ "url": url })).unwrap()
    }

    fn check(url: &str, account: &str, address: &str) -> Result<String, String> {
        let target = Target { r#type: "plan".into(), account: account.into(), address: address.into() };
        let filled = location(url).fill(&target, &|name| match name {
            "plan" => Ok("a/b?c".to_owned()),
            name => Err(format!("there is no parameter `{name}`")),
        });
        filled.map(String::from)
    }

    #[test]
    fn what_is_filled_in_stays_a_part_of_the_path() {
        let base = "https://provider.example/v1/{account}/{target}/{plan}";
        assert_eq!(check(base, "a 1", "plans/x#y").unwrap(), "https://provider.example/v1/a%201/plans/x%23y/a%2Fb%3Fc");
        for (account, address) in [("..", "x"), (".", "x"), ("a", "../x"), ("a", "x//y"), ("a", "x/./y"), ("", "x")] {
            assert!(check(base, account, address).unwrap_err().contains("no part of a path"), "{account} {address}");
        }
        assert!(check("https://provider.example/{other}", "a", "x").unwrap_err().contains("no parameter"));
    }

    #[test]
    fn the_host_is_the_contracts_own() {
        for url in [
            "https://{account}/x",
            "https://{target}.example/x",
            "https://user@provider.example/x",
            "https://provider.example?x={account}",
            "https://provider.example#/x",
            "provider.example/x",
            "file:///etc",
            "ftp://127.0.0.1/x",
            "https://provider.example/a/../b",
        ] {
            assert!(check(url, "evil.example", "evil.example").is_err(), "{url}");
        }
    }

    #[test]
    fn plain_http_goes_to_this_machine_only() {
        assert!(check("http://127.0.0.1:8080/x", "a", "x").is_ok());
        assert!(check("http://[::1]:8080/x", "a", "x").is_ok());
        for url in [
            "http://provider.example/x",
            "http://10.0.0.1/x",
            "http://localhost/x",
            "http://127.0.0.1.evil.example/x",
            "http://[::2]/x",
        ] {
            let refused = check(url, "a", "x").unwrap_err();
            assert!(refused.contains("not encrypted"), "{url}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn no_account_or_address_leads_elsewhere(account in ".{1,40}", address in ".{1,40}") {
            if let Ok(url) = check("https://provider.example/v1/{account}/{target}/end", &account, &address) {
                let url = Url::parse(&url).unwrap();
                prop_assert_eq!(url.host_str(), Some("provider.example"));
                prop_assert!(url.path().starts_with("/v1/") && url.path().ends_with("/end"));
                prop_assert_eq!((url.query(), url.fragment()), (None, None));
            }
        }
    }
}
