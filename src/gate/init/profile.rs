//! The text of the deployment file.

use super::{Configured, Hints};
use crate::visible::visible;
use closer_adapters::mcp::Listed;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Who calls through the gate, and for what.
const CALLER: &str = "agent.client";
const OWNER: &str = "user.owner";
/// Parameters that name what a tool acts on, the likeliest first.
const NAMING: [&str; 12] =
    ["path", "file_path", "filepath", "file", "uri", "url", "id", "key", "name", "repo", "channel", "to"];

const HEAD: &str = r#"# Written by `closer gate init`. Everything here is the strictest answer: what is not granted goes to The Bench, and every
# effect counts as irreversible and is confirmed by a person until you say otherwise. Change what you know better; after
# that a new space is founded with it (`closer init`), or a running one is changed on The Bench.

[run]
store = "var/store"
until = "stopped"

[profile]
user = "user.owner"
scope = ["gate"]

# The ten answers. Each says what holds with this file as it stands.
[profile.answers]
# Keys and signatures: see docs/guides/deployment.md, where more than one person answers.
q1 = "Sessions are bound to the peer credentials of a Unix socket, which only the owner's own processes reach. Identities are revoked in the registry."
# To appoint somebody who may restrict at once, add an [[appointment]].
q2 = "The owner alone changes goals, grants and policy, and restricts."
# What a client calls for activates work, and nothing else does.
q3 = "Only calls of the registered client activate work. What cannot be told apart is recorded and activates nothing."
# A file that Closer can read itself is better than a person: see `readback_method` below.
q4 = "What a person confirms after looking at the target, also where an outcome is unknown. A server's own answer establishes nothing."
q5 = "Commits, ownership, operation keys and reassignment are guards of one append in one log."
# What a server is handed are the arguments of the call that was judged.
q6 = "The client gets what its own calls answer. Each server gets the arguments of a call that was admitted, and nothing else."
q7 = "Leases, triggers and budgets end by the named policies; a packet that is overdue is escalated once to the owner."
q8 = "Other calls go on while a question waits. Nothing is done while nobody calls."
# Lower these, or raise them, to what the client is to be able to do in all.
q9 = "Each call reserves one call and its longest time as a whole. Nothing is overbooked; a call that is under way is not called back."
q10 = "An effect that nobody admitted, or an admitted one that happened twice, speaks against this deployment."

[profile.budget]
calls = 10000
"#;

/// The deployment file for these servers and what they list.
pub(super) fn text(
    configured: &BTreeMap<String, Configured>,
    listed: &BTreeMap<String, Vec<Listed>>,
    hints: Hints,
) -> String {
    let mut text = HEAD.to_owned();
    let tools: Vec<Tool<'_>> =
        listed.iter().flat_map(|(server, tools)| tools.iter().map(|tool| Tool { server, tool, hints })).collect();
    rules(&mut text, &tools);
    identities(&mut text, &tools);
    for (name, configured) in configured {
        server(&mut text, name, configured);
    }
    tools.iter().for_each(|tool| tool.write(&mut text));
    grants(&mut text, &tools);
    kept(&mut text);
    text
}

/// A value as TOML writes it on one line.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{} = {}", quoted(name), toml(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => quoted(text),
        Value::Null => "\"\"".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.replace(['\n', '\r'], " ")).to_string()
}

fn put(text: &mut String, line: impl std::fmt::Display) {
    if writeln!(text, "{line}").is_err() {
        tracing::debug!("a string takes whatever is written");
    }
}

fn rules(text: &mut String, tools: &[Tool<'_>]) {
    put(text, "\n[[profile.disclosure_rules]]\npurpose = \"work\"");
    put(
        text,
        format!("recipient = \"{CALLER}\"\ncategories = [\"obligation\"]\npermitted_use = [\"answer this work\"]"),
    );
    put(text, "\n# To act is one permission, to hand an operation its inputs another: these are the second.");
    for tool in tools {
        let operation = tool.operation();
        put(text, "[[profile.disclosure_rules]]");
        put(text, format!("purpose = \"{operation}\"\nrecipient = \"{OWNER}\"\ncategories = [\"input\"]"));
        put(text, format!("permitted_use = [\"{operation}\"]\n"));
    }
}

fn identities(text: &mut String, tools: &[Tool<'_>]) {
    let operations: Vec<Value> = tools.iter().map(|tool| json!(tool.operation())).collect();
    put(text, "# --- Who calls.\n\n[[identity]]");
    put(text, format!("actor_id = \"{CALLER}\"\nkind = \"producer\"\nroles = [\"participant\"]"));
    put(text, format!("capabilities = {}", toml(&Value::Array(operations))));
    put(text, "\n[[source]]\nsource_id = \"source.people\"");
}

fn server(text: &mut String, name: &str, configured: &Configured) {
    put(text, format!("\n# --- The server `{name}`.\n\n[[mcp_server]]\nname = {}", quoted(name)));
    match &configured.command {
        Some(command) => {
            put(text, format!("program = {}", quoted(command)));
            put(text, format!("arguments = {}", toml(&json!(configured.args))));
        }
        None => {
            put(text, format!("url = {}", quoted(configured.url.as_deref().unwrap_or_default())));
            put(text, "# Where it asks for a token: bearer_file = \"./token\", a file that nobody else may read.");
        }
    }
    if !configured.env.is_empty() {
        put(
            text,
            "# These stand here in plain text: keep this file to yourself, or have them in the environment and allow them by name.",
        );
        put(text, format!("environment = {}", toml(&json!(configured.env))));
    }
    if let Some(folder) = &configured.cwd {
        put(text, format!("working_directory = {}", quoted(folder)));
    }
    put(
        text,
        "\n# Where Closer can look itself, write how: `file`, `http_get`, `command`, or `mcp_read` for a reading tool of a server.",
    );
    put(text, format!("[[readback_method]]\nmethod = \"{name}.person\"\nsource = \"source.people\""));
    put(text, format!("target_type = \"{name}\""));
    put(
        text,
        "contract = { kind = \"person\", instructions = \"Look at the target and say whether it shows what was called for.\" }",
    );
}

fn grants(text: &mut String, tools: &[Tool<'_>]) {
    let reads: Vec<Value> = tools.iter().filter(|tool| tool.reads()).map(|tool| json!(tool.operation())).collect();
    put(text, "# --- What may be done without asking.\n");
    if reads.is_empty() {
        put(text, "# Nothing. To allow something for good, answer a packet with a grant, or write one here:\n#");
        let example = tools.first().map_or_else(|| "OPERATION".to_owned(), Tool::operation);
        let kind = tools.first().map_or("TYPE", |tool| tool.server);
        put(text, format!("# [[grant]]\n# grant_id = \"grant.one\"\n# allowed_operations = [\"{example}\"]"));
        put(
            text,
            format!(
                "# targets = [{{ type = \"{kind}\", account = \"{kind}\", address = \"*\" }}]\n# expiry = \"now+30d\""
            ),
        );
        return;
    }
    let servers: std::collections::BTreeSet<&str> = tools.iter().map(|tool| tool.server).collect();
    for server in servers {
        let own: Vec<Value> = tools
            .iter()
            .filter(|tool| tool.reads() && tool.server == server)
            .map(|tool| json!(tool.operation()))
            .collect();
        if own.is_empty() {
            continue;
        }
        put(text, format!("# You confirmed that these only read.\n[[grant]]\ngrant_id = \"grant.{server}.reads\""));
        put(text, format!("allowed_operations = {}", toml(&Value::Array(own))));
        put(text, format!("targets = [{{ type = \"{server}\", account = \"{server}\", address = \"*\" }}]"));
        put(text, "expiry = \"now+30d\"\n");
    }
}

fn kept(text: &mut String) {
    put(text, "\n# --- What the calls are for.\n\n[[declaration]]\ndeclaration_id = \"declaration.gate\"");
    put(
        text,
        "goal = { goal_id = \"goal.gate\", text = \"The client does what it is asked, within what is granted.\" }",
    );
    put(text, "success_criteria = [\"Every effect was admitted and read back.\"]");
    put(text, "\n[[obligation]]\nobligation_id = \"obligation.gate\"\ndeclaration = \"declaration.gate\"");
    put(text, format!("responsible_owner = \"{CALLER}\""));
    put(text, "gap = { text = \"Is the client's work done?\", propositions = [\"gate-work-done\"] }");
    put(text, "resolution_conditions = [{ id = \"condition.gate\", proposition = \"gate-work-done\" }]");
    put(text, "\n# It sleeps until somebody calls; this date is far off.\n[[reentry]]\nreentry_id = \"reentry.gate\"");
    put(text, "obligation_id = \"obligation.gate\"\npredicate = { operator = \"TimeReached\", at = \"now+3650d\" }");
}

/// One tool to be written down.
struct Tool<'a> {
    server: &'a str,
    tool: &'a Listed,
    hints: Hints,
}

impl Tool<'_> {
    fn operation(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' };
        let name: String = self.tool.name.chars().map(plain).take(80).collect();
        format!("{}.{name}", self.server)
    }

    fn hint(&self, name: &str) -> Option<bool> {
        self.tool.annotations.get(name).and_then(Value::as_bool)
    }

    fn reads(&self) -> bool {
        self.hints == Hints::ReadsConfirmed && self.hint("readOnlyHint") == Some(true)
    }

    fn properties(&self) -> Option<&Map<String, Value>> {
        self.tool.input_schema.get("properties").and_then(Value::as_object)
    }

    fn required(&self) -> Vec<&str> {
        let required = self.tool.input_schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// What the tool acts on: the parameter that is called like it, else everything it is handed.
    fn address(&self) -> String {
        let is_text = |name: &&str| {
            let kind = self.properties().and_then(|properties| properties.get(*name)?.get("type"));
            kind.and_then(Value::as_str) == Some("string") && self.required().contains(name)
        };
        match NAMING.into_iter().find(is_text) {
            Some(name) => format!("{{{name}}}"),
            None => format!("{}/{{arguments}}", self.tool.name.replace(['{', '}'], "-")),
        }
    }

    fn parameters(&self) -> Vec<Value> {
        let required = self.required();
        let rule = |(name, schema): (&String, &Value)| {
            let kind = match schema.get("type").and_then(Value::as_str) {
                Some("string") => "text",
                Some("integer") => "integer",
                Some("boolean") => "boolean",
                Some(_) | None => "any",
            };
            json!({ "name": name, "type": kind, "optional": !required.contains(&name.as_str()) })
        };
        self.properties().into_iter().flatten().map(rule).collect()
    }

    fn write(&self, text: &mut String) {
        let description = visible(self.tool.description.as_deref().unwrap_or(&self.tool.name), false);
        let description: String = description.chars().take(500).collect();
        let parameters = self.parameters();
        put(text, format!("\n[[operation]]\noperation = \"{}\"", self.operation()));
        put(text, format!("text = {}", quoted(&description)));
        match (self.reads(), self.hint("readOnlyHint"), self.hint("destructiveHint")) {
            (true, ..) => put(text, "effect_class = \"read_only\""),
            (false, Some(true), _) => put(
                text,
                "# The server says that it only reads. Where that is so: effect_class = \"read_only\".\neffect_class = \"external_irreversible\"",
            ),
            (false, _, Some(false)) => put(
                text,
                "# The server says that it destroys nothing. Where it can be undone: effect_class = \"external_reversible\".\neffect_class = \"external_irreversible\"",
            ),
            (false, ..) => put(text, "effect_class = \"external_irreversible\""),
        }
        if parameters.is_empty() {
            put(text, "parameters = []");
        } else {
            put(text, "parameters = [");
            parameters.iter().for_each(|rule| put(text, format!("    {},", toml(rule))));
            put(text, "]");
        }
        let names: Vec<Value> = parameters.iter().filter_map(|rule| rule.get("name").cloned()).collect();
        put(text, "# What tells one intent from another. Leave out what only words it differently.");
        put(text, format!("identifying_parameters = {}", toml(&Value::Array(names))));
        put(text, format!("target_type = \"{}\"\nreadback_method = \"{}.person\"", self.server, self.server));
        put(text, "repeat_safety = \"not_repeat_safe\"");
        put(text, "\n[operation.contract]\nkind = \"mcp_tool\"");
        put(text, format!("server = {}\ntool = {}", quoted(self.server), quoted(&self.tool.name)));
        put(
            text,
            "# The tool as it was listed. Where it is listed otherwise it is not called: look at it, then write its new digest.",
        );
        put(text, format!("listed = \"{}\"", self.tool.digest));
        put(text, format!("account = \"{}\"\naddress = {}", self.server, quoted(&self.address())));
        put(text, "# The same again within this time is answered by its first result. 0: each call is new.");
        put(text, "repeat_window_ms = 600000");
    }
}
