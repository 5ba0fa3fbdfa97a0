//! What a service says about a target when asked anew.

use super::Seen;
use crate::declared::{Names, pointer};
use crate::operations::{Body, HttpClient, Location, SendError};
use closer_contracts::canonical;
use closer_contracts::fault::Fault;
use closer_contracts::refs::Target;
use closer_contracts::work::TargetVersion;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Contract `http_get`: asks for the target and shows members of the JSON answer.
///
/// The answer must have status 200 and be strict JSON without fractions and repeated members. Members that the answer
/// lacks are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpGet {
    /// Where to ask. Only `{target}` and `{account}` can stand in its address.
    pub endpoint: Location,
    /// Where the answer says whose the target is, as a JSON pointer; without it the look establishes nothing.
    pub account_pointer: String,
    /// Where the answer states the target's own version, as a JSON pointer. Default: its `ETag`, if it has one.
    #[serde(default)]
    pub version_pointer: Option<String>,
    /// The fields to show: by name, a JSON pointer into the answer.
    pub fields: BTreeMap<String, String>,
}

impl HttpGet {
    pub(super) fn check(&self) -> Result<(), Fault> {
        self.endpoint.check(Names(&[])).map_err(|fault| fault.within("endpoint"))?;
        pointer(&self.account_pointer, "account_pointer")?;
        self.version_pointer.as_ref().map_or(Ok(()), |version| pointer(version, "version_pointer"))?;
        self.fields.iter().try_for_each(|(name, field)| pointer(field, name).map_err(|fault| fault.within("fields")))
    }
}

pub(super) async fn look(contract: &HttpGet, target: &Target, client: &HttpClient) -> Result<Seen, String> {
    let none = |name: &str| Err(format!("a readback has no parameter `{name}`"));
    let url = contract.endpoint.fill(target, &none)?;
    let request = client.request(reqwest::Method::GET, url, HeaderMap::new(), None, &contract.endpoint)?;
    let answer = client.send(request, &contract.endpoint).await.map_err(|error| match error {
        SendError::NotSent(reason) | SendError::Unknown(reason) => reason,
    })?;
    if answer.status != 200 {
        return Err(format!("the service answered with status {}", answer.status));
    }
    let body = match answer.body {
        Body::Whole(bytes) => canonical::read_value(&bytes).map_err(|fault| fault.to_string())?,
        Body::TooLong => return Err("the answer is longer than the contract allows".to_owned()),
        Body::BrokeOff(why) => return Err(format!("the answer broke off: {why}")),
    };
    let account = body
        .pointer(&contract.account_pointer)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("the answer does not say at `{}` whose the target is", contract.account_pointer))?;
    let version = match &contract.version_pointer {
        Some(pointer) => match body.pointer(pointer) {
            Some(Value::String(version)) => Some(version.clone()),
            Some(Value::Number(version)) => Some(version.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
        },
        None => answer.version,
    };
    let shown =
        contract.fields.iter().filter_map(|(name, pointer)| Some((name.clone(), body.pointer(pointer)?.clone())));
    Ok(Seen {
        account: account.into(),
        version: version.map_or(TargetVersion::Unknown, |version| TargetVersion::Known(version.into())),
        fields: shown.collect::<Map<String, Value>>(),
        limitations: Vec::new(),
    })
}
