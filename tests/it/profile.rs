//! A deployment that names nothing or can do nothing is refused before anything is prepared: by file, line and field, and with
//! what to do.

use crate::support::{Called, Place, counting};
use serde_json::Value;

/// One deployment that does not fit: what is changed in the sound one, and where and how that is told.
struct Case {
    /// A text of the sound file, and what stands there instead.
    change: (&'static str, &'static str),
    field: &'static str,
    /// What the told line holds.
    on: &'static str,
    /// What the reason holds.
    says: &'static str,
}

const fn case(change: (&'static str, &'static str), field: &'static str, on: &'static str, says: &'static str) -> Case {
    Case { change, field, on, says }
}

/// A rule of a participant that comes before the others.
const RULE: &str = "[[participant.rules]]\nname = \"it says done\"\n";
const READ: &str = "contract = { kind = \"file\", root = \"./var/world\", account = \"local\" }";
const GRANTED: &str = "allowed_operations = [\"file.finish\"]";
const TIMED: &str = "predicate = { operator = \"TimeReached\", at = \"now+14d\" }";
const WATCHED: &str = "watch = { on = \"entity\", entity_ref = \"file.target\", change_kinds = [\"file_changed\"] }";
const LOOKED: &str = "target = { type = \"file\", account = \"local\", address = \"target\" }\nobligation_id";
const TARGETS: &str = "targets = [{ type = \"file\", account = \"local\", address = \"*\" }]";
const SAYS: &str = "{ field = \"/observation/value/content\", comparison = \"equals\", value = \"done\\n\" }]\nassess";
const TAKES_DAYS: &str =
    "target_type = \"file\"\nparameters = [{ name = \"days\", type = \"integer\" }]\nreadback_method = \"file.read\"";
const TYPED: &str = "target_type = \"file\"\nreadback_method = \"file.read\"";

/// A name that nothing is declared by.
#[rustfmt::skip]
const NAMES: &[Case] = &[
    case(("scope = [\"count\"]", "scope = [\"count\"]\nrestrictive_authority = \"nobody\""), "profile.restrictive_authority", "\"nobody\"", "no identity is called `nobody`"),
    case(("scope = [\"count\"]", "scope = [\"count\"]\ndeadline_policy = \"policy.none\""), "profile.deadline_policy", "policy.none", "there are `policy.deadline`"),
    case(("recipient = \"agent.worker\"", "recipient = \"agent.walker\""), "profile.disclosure_rules.0.recipient", "agent.walker", "no identity is called"),
    case(("\"claim\", \"constraint\"", "\"claims\", \"constraint\""), "profile.disclosure_rules.0.categories.1", "categories", "there is no `claims`"),
    case(("capabilities = [\"file.finish\"]", "capabilities = [\"file.start\"]"), "identity.0.capabilities.0", "file.start", "no capability is called"),
    case(("kind = \"issuer\"", "kind = \"issuer\"\nappointed_by = \"nobody\""), "identity.1.appointed_by", "nobody", "no identity is called"),
    case(("issuer = \"issuer.security\"", "issuer = \"issuer.none\""), "appointment.0.issuer", "issuer.none", "no identity is called"),
    case(("broad = true", "broad = true\noperations = [\"file.start\"]"), "appointment.0.operations.0", "file.start", "no operation is called"),
    case(("broad = true", "broad = true\nescalation_policy_ref = \"policy.deadline\""), "appointment.0.escalation_policy_ref", "policy.deadline", "no escalation policy"),
    case(("independent_owner = \"user.owner\"", "independent_owner = \"user.other\""), "appointment.0.independent_owner", "user.other", "there are `agent.worker`"),
    case(("emitters = [\"issuer.security\"]", "emitters = [\"issuer.none\"]"), "source.1.emitters.0", "issuer.none", "no identity is called"),
    case(("source = \"source.files\"", "source = \"source.none\""), "readback_method.0.source", "source.none", "no source"),
    case(("source = \"source.files\"", "source = \"source.people\""), "readback_method.0.source", "source.people", "closer.observer"),
    case((TYPED, "target_type = \"file\"\nreadback_method = \"file.look\""), "operation.0.readback_method", "file.look", "no readback method is called `file.look`"),
    case((TYPED, "target_type = \"file\"\nreadback_method = { id = \"file.read\", version = 2 }"), "operation.0.readback_method", "version = 2", "at version 1, not 2"),
    case((TYPED, "target_type = \"folder\"\nreadback_method = \"file.read\""), "operation.0.readback_method", "readback_method", "the operation's are `folder`"),
    case((TYPED, "target_type = \"file\"\nidentifying_parameters = [\"days\"]\nreadback_method = \"file.read\""), "operation.0.identifying_parameters.0", "days", "has no parameter `days`"),
    case((TYPED, "target_type = \"file\"\nverified_by = \"nobody\"\nreadback_method = \"file.read\""), "operation.0.verified_by", "nobody", "no identity is called"),
    case((GRANTED, "allowed_operations = [\"file.start\"]"), "grant.0.allowed_operations.0", "file.start", "no operation is called `file.start`"),
    case((GRANTED, "allowed_operations = [\"file.finish\"]\ndelegability = { named = { delegates = [\"nobody\"], depth = 1 } }"), "grant.0.delegability.named.delegates.0", "nobody", "no identity is called"),
    case(("success_criteria = [\"It does.\"]", "success_criteria = [\"It does.\"]\nexisting_grants = [\"grant.none\"]"), "declaration.0.existing_grants.0", "grant.none", "no grant is called"),
    case(("proposition = \"file-says-done\" }]", "proposition = \"file-says-done\", evidence_rule_ref = \"rule.none\" }]"), "obligation.0.resolution_conditions.0.evidence_rule_ref", "rule.none", "there are `rule.sufficiency`"),
    case(("authority_boundary = [\"grant.finish\"]", "authority_boundary = [\"grant.none\"]"), "obligation.0.authority_boundary.0", "grant.none", "no constraint or grant"),
    case(("authority_boundary = [\"grant.finish\"]", "authority_boundary = []\nresponsible_owner = \"nobody\""), "obligation.0.responsible_owner", "nobody", "no identity is called"),
    case((WATCHED, "watch = { on = \"item\", id = \"claim.none\" }"), "obligation.0.dependencies.0.watch.id", "claim.none", "no item is called"),
    case((WATCHED, "watch = { on = \"entity\", entity_ref = \"file.target\", change_kinds = [\"file_moved\"] }"), "obligation.0.dependencies.0.watch.change_kinds.0", "file_moved", "no kind of change"),
    case((TIMED, "event_sources = [{ source_id = \"source.none\" }]\npredicate = { operator = \"TimeReached\", at = \"now+14d\" }"), "reentry.0.event_sources.0.source_id", "source.none", "no source is called"),
    case((TIMED, "refresh_policy_ref = \"policy.expiry\"\npredicate = { operator = \"TimeReached\", at = \"now+14d\" }"), "reentry.0.refresh_policy_ref", "policy.expiry", "there are `policy.refresh`"),
    case((TIMED, "predicate = { operator = \"Any\", items = [{ operator = \"TimeReached\", at = \"now+14d\" }, { operator = \"EvidenceAdded\", scope_ref = [\"count\"], permitted_source_refs = [\"source.none\"], after_cursor = {} }] }"), "reentry.0.predicate.items.1.permitted_source_refs.0", "source.none", "no source is called"),
    case((TIMED, "predicate = { operator = \"EvidenceAdded\", scope_ref = [\"count\"], permitted_source_refs = [\"source.files\"], after_cursor = { \"file.look file local target\" = 0 } }"), "reentry.0.predicate", "file.look", "no readback method is called `file.look`"),
    case(("obligation_id = \"obligation.count\"\npredicate", "obligation_id = \"obligation.none\"\npredicate"), "reentry.0.obligation_id", "obligation.none", "no obligation is called"),
    case(("method = \"file.read\"\ntarget =", "method = \"file.look\"\ntarget ="), "observation.0.method", "file.look", "no readback method"),
    case(("obligation_id = \"obligation.count\"\nevery_ms", "obligation_id = \"obligation.none\"\nevery_ms"), "observation.0.obligation_id", "obligation.none", "no obligation is called"),
    case(("event = { source_id = \"source.files\"", "event = { source_id = \"source.people\""), "observation.0.event.source_id", "source.people", "closer.observer"),
    case(("change_kind = \"file_changed\" }", "change_kind = \"file_moved\" }"), "observation.0.event.change_kind", "file_moved", "add it to its `change_kinds`"),
    case(("identity = \"agent.worker\"", "identity = \"agent.walker\""), "participant.0.identity", "agent.walker", "there are `agent.worker`"),
    case(("identity = \"agent.worker\"", "identity = \"issuer.security\""), "participant.0.identity", "issuer.security", "with the role `participant`"),
    case(("proposition_id = \"file-says-done\"", "proposition_id = \"file-says-so\""), "participant.0.rules.0.assess.0.proposition_id", "file-says-so", "no proposition is called"),
    case(("operation = \"file.finish\"\ntarget = ", "operation = \"file.start\"\ntarget = "), "participant.0.rules.1.propose.0.operation", "file.start", "no operation is called"),
];

/// A contract, a rule or a predicate that this version cannot follow.
#[rustfmt::skip]
const CONTRACTS: &[Case] = &[
    case((READ, "contract = { kind = \"xx\", root = \"./var/world\", account = \"local\" }"), "readback_method.0.contract.kind", "xx", "the kinds are `file`"),
    case((READ, "contract = { root = \"./var/world\", account = \"local\" }"), "readback_method.0.contract.kind", "contract", "names its `kind`"),
    case((READ, "contract = { kind = \"file\", rot = \"./var/world\", account = \"local\" }"), "readback_method.0.contract.rot", "rot", "unknown field `rot`"),
    case((READ, "contract = { kind = \"file\", root = \"var/world\", account = \"local\" }"), "readback_method.0.contract.root", "var/world", "begins with `./`"),
    case((READ, "contract = { kind = \"x509_file\", root = \"./var/world\", account = \"local\", openssl = \"/bin/true\", deadline_ms = 0 }"), "readback_method.0.contract.deadline_ms", "deadline_ms", "at least 1"),
    case((READ, "contract = { kind = \"command\", account_member = \"a\", run = { program = \"/bin/true\", arguments = [\"{days}\"] } }"), "readback_method.0.contract.run.arguments.0", "{days}", "only `{target}` and `{account}`"),
    case((READ, "contract = { kind = \"http_get\", endpoint = { url = \"http://127.0.0.1:1/{target}\" }, account_pointer = \"account\", fields = {} }"), "readback_method.0.contract.account_pointer", "account_pointer", "as in `/account`"),
    case((READ, "contract = { kind = \"http_get\", endpoint = { url = \"http://127.0.0.1:1/{target}\" }, account_pointer = \"/account\", fields = { plan = \"plan\" } }"), "readback_method.0.contract.fields.plan", "plan = ", "as in `/plan`"),
    case((READ, "contract = { kind = \"http_get\", endpoint = { url = \"http://provider.example/{target}\" }, account_pointer = \"/account\", fields = {} }"), "readback_method.0.contract.endpoint.url", "provider.example", "not encrypted"),
    case(("kind = \"command\"", "kind = \"shell\""), "operation.0.contract.kind", "shell", "the kinds are `file_write`"),
    case(("target_root = \"./var/world\"", "target_rot = \"./var/world\""), "operation.0.contract.run.target_rot", "target_rot", "unknown field `target_rot`"),
    case(("\"sh\", \"{target}\"]", "\"sh\", \"{target}\", \"{days}\"]"), "operation.0.contract.run.arguments.4", "arguments", "there is no parameter `days`"),
    case(("\"sh\", \"{target}\"]", "\"sh\", \"{target\"]"), "operation.0.contract.run.arguments.3", "arguments", "neither a placeholder nor doubled"),
    case(("target_root = \"./var/world\"", "target_root = \"./var/world\"\ndeadline_ms = 0"), "operation.0.contract.run.deadline_ms", "deadline_ms = 0", "at least 1"),
    case((TIMED, "predicate = { operator = \"MoonFull\", phase = 1 }"), "reentry.0.predicate.operator", "MoonFull", "this version has no such operator"),
    case((TIMED, "predicate = { operator = \"Any\", items = [{ operator = \"TimeReached\", at = \"now+14d\" }, { operator = \"MoonFull\" }] }"), "reentry.0.predicate.items.1.operator", "MoonFull", "unknown_version"),
    case(("kind = \"policy\"", "kind = \"polite\""), "participant.0.kind", "polite", "the kinds are `policy`"),
    case(("last = true", "lost = true"), "participant.0.rules.0.lost", "lost = true", "unknown field `lost`"),
    case(("field = \"/observation/type\"", "field = \"observation/type\""), "participant.0.rules.1.items.file.0.field", "observation/type", "no JSON pointer"),
    case((RULE, "[[participant.rules]]\nname = \"it says done\"\nwhen = [{ field = \"fiel/observed_at\", comparison = \"equals\", value = 1 }]\n"), "participant.0.rules.0.when.0.field", "fiel/", "bound here: `file`"),
    case((SAYS, "{ field = \"/observation/value/content\", comparison = \"equals\", value = \"{{file/x}}\" }]\nassess"), "participant.0.rules.0.items.file.0.value", "{{file/x}}", "no item is bound to `file`"),
    case(("assess = [{ evidence = \"file\"", "assess = [{ evidence = \"fiel\""), "participant.0.rules.0.assess.0.evidence", "fiel", "no item is bound to `fiel`"),
    case(("proposition_id = \"file-says-done\"", "proposition_id = \"{{file/a\""), "participant.0.rules.0.assess.0.proposition_id", "{{file/a", "an opening without its end"),
    case(("parameters = {}", "parameters = { note = \"{{other/x}}\" }"), "participant.0.rules.1.propose.0.parameters.note", "{{other/x}}", "bound here: `file`"),
    case(("parameters = {}", "parameters = { note = \"{{file/observed_at + 3w}}\" }"), "participant.0.rules.1.propose.0.parameters.note", "3w", "no duration"),
    case((RULE, "[[participant.rules]]\nname = \"it says done\"\neach = \"other\"\n"), "participant.0.rules.0.each", "each", "names no pattern"),
];

/// A bound that leaves nothing, a target out of reach, a time that is over.
#[rustfmt::skip]
const BOUNDS: &[Case] = &[
    case((GRANTED, "allowed_operations = [\"file.finish\"]\nparameter_bounds = [{ operation = \"file.finish\", parameter = \"days\", at_least = 1 }]"), "grant.0.parameter_bounds.0.parameter", "days", "has no parameter `days`; it has none"),
    case((LOOKED, "target = { type = \"file\", account = \"local\", address = \"../target\" }\nobligation_id"), "observation.0.target.address", "../target", "lies outside"),
    case((LOOKED, "target = { type = \"file\", account = \"local\", address = \"/etc/passwd\" }\nobligation_id"), "observation.0.target.address", "/etc/passwd", "lies outside"),
    case((LOOKED, "target = { type = \"file\", account = \"remote\", address = \"target\" }\nobligation_id"), "observation.0.target.account", "remote", "is `local`, not `remote`"),
    case((LOOKED, "target = { type = \"folder\", account = \"local\", address = \"target\" }\nobligation_id"), "observation.0.target.type", "folder", "there are `file`"),
    case((TARGETS, "targets = [{ type = \"file\", account = \"local\", address = \"../*\" }]"), "grant.0.targets.0.address", "../*", "lies outside"),
    case((TARGETS, "targets = [{ type = \"file\", account = \"other\", address = \"*\" }]"), "grant.0.targets.0.account", "other", "is `local`, not `other`"),
    case((TARGETS, "targets = [{ type = \"fill\", account = \"local\", address = \"*\" }]"), "grant.0.targets.0.type", "fill", "no"),
    case(("broad = true", "broad = true\ntargets = [{ type = \"file\", account = \"other\", address = \"*\" }]"), "appointment.0.targets.0.account", "other", "is `local`"),
    case(("expiry = \"now+30d\"", "expiry = \"now-1d\""), "grant.0.expiry", "now-1d", "is over already"),
    case(("expiry = \"now+30d\"", "expiry = \"2020-01-01T00:00:00Z\""), "grant.0.expiry", "2020", "is over already"),
    case(("broad = true", "broad = true\nexpires_at = \"now\""), "appointment.0.expires_at", "now", "is over already"),
    case((TYPED, "target_type = \"file\"\nverified_until = \"now-1s\"\nreadback_method = \"file.read\""), "operation.0.verified_until", "now-1s", "is over already"),
    case((TIMED, "expires_at = \"now-1s\"\npredicate = { operator = \"TimeReached\", at = \"now+14d\" }"), "reentry.0.expires_at", "now-1s", "is over already"),
    case(("success_criteria = [\"It does.\"]", "success_criteria = [\"It does.\"]\neffective_period = { from = \"now+2d\", to = \"now+1d\" }"), "declaration.0.effective_period.to", "now+1d", "the time between them is empty"),
    case(("every_ms = 100", "every_ms = 0"), "observation.0.every_ms", "every_ms = 0", "write 1 or more"),
    case(("reconcile_within_ms = 86_400_000", "reconcile_within_ms = 0"), "appointment.0.reconcile_within_ms", "= 0", "write 1 or more"),
    case(("scope = [\"count\"]", "scope = [\"count\"]\nlimits = { episode_ms_max = 0 }"), "profile.limits.episode_ms_max", "= 0", "write 1 or more"),
    case((GRANTED, "allowed_operations = [\"file.finish\"]\nresource_bounds = { calls = 0 }"), "grant.0.resource_bounds.calls", "calls = 0", "write 1 or more"),
    case(("expectations = [{ field = \"content\"", "expectations = [{ field = \"bytes\", comparison = \"at_least\", value = 91 }, { field = \"bytes\", comparison = \"at_most\", value = 90 }, { field = \"content\""), "participant.0.rules.1.propose.0.expected_postcondition.expectations.1.value", "91", "`at_least` 91"),
    case((SAYS, "{ field = \"/observation/value/content\", comparison = \"equals\", value = \"a\" }, { field = \"/observation/value/content\", comparison = \"equals\", value = \"b\" }]\nassess"), "participant.0.rules.0.items.file.1.value", "items.file", "at once"),
    case(("change_kinds = [\"file_changed\"]\n", "change_kinds = [\"file_changed\"]\nscope = [\"elsewhere\"]\n"), "source.0.scope", "elsewhere", "begin it with \"count\""),
    case(("store = \"var/store\"", "store = \"\""), "run.store", "store = ", "such as `var/store`"),
    case(("store = \"var/store\"", "store = \".\""), "run.store", "store = ", "the deployment's own folder"),
    case(("store = \"var/store\"", "store = \"closer.toml\""), "run.store", "closer.toml", "the deployment file itself"),
    case(("store = \"var/store\"", "store = \"closer.toml/store\""), "run.store", "closer.toml", "is a file"),
    case(("program = \"touch\"", "program = \"no-such-program\""), "prepare.0.program", "no-such-program", "is not installed"),
    case(("creates = \"var/world/target\"", "creates = \"\""), "prepare.0.creates", "creates", "is empty"),
];

/// A key that nothing is read from, in every kind of place.
#[rustfmt::skip]
const KEYS: &[Case] = &[
    case(("store = \"var/store\"", "stor = \"var/store\""), "run.stor", "stor =", "unknown field `stor`"),
    case(("creates = ", "crates = "), "prepare.0.crates", "crates =", "unknown field `crates`"),
    case(("every_ms = 100", "evry_ms = 100"), "observation.0.evry_ms", "evry_ms =", "unknown field `evry_ms`"),
    case(("source_id = \"source.files\", entity_ref", "sorce_id = \"source.files\", entity_ref"), "observation.0.event.sorce_id", "sorce_id =", "unknown field `sorce_id`"),
    case(("{ on = \"entity\", entity_ref = \"word\"", "{ on = \"entity\", entty_ref = \"word\""), "obligation.0.dependencies.1.watch.entty_ref", "entty_ref =", "unknown field `entty_ref`"),
    case((TIMED, "predicate = { operator = \"TimeReached\", att = \"now+14d\" }"), "reentry.0.predicate.att", "att =", "unknown field `att`"),
    case(("identity = \"agent.worker\"", "identty = \"agent.worker\""), "participant.0.identty", "identty =", "unknown field `identty`"),
    case(("[profile]\n", "[profle]\n"), "profle", "[profle]", "no such section"),
    case(("[[grant]]", "[[grnt]]"), "grnt", "[[grnt]]", "no such section"),
    case(("user = \"user.owner\"", "usr = \"user.owner\""), "profile.usr", "usr =", "unknown field `usr`"),
];

/// A program that is not there, wherever one is declared.
#[rustfmt::skip]
const PROGRAMS: &[Case] = &[
    case(("program = \"touch\"", "program = \"./touch\""), "prepare.0.program", "./touch", "there is no program at"),
    case(("program = \"touch\"", "program = \"/nope/touch\""), "prepare.0.program", "/nope/touch", "there is no program at"),
    case(("program = \"touch\"", "program = \"./closer.toml\""), "prepare.0.program", "./closer.toml", "nothing that can be run"),
    case(("program = \"/bin/sh\"", "program = \"./openssl\""), "operation.0.contract.run.program", "./openssl", "there is no program at"),
    case((READ, "contract = { kind = \"x509_file\", root = \"./var/world\", account = \"local\", openssl = \"./openssl\" }"), "readback_method.0.contract.openssl", "./openssl", "there is no program at"),
    case((READ, "contract = { kind = \"command\", account_member = \"a\", run = { program = \"/nope/look\", arguments = [] } }"), "readback_method.0.contract.run.program", "/nope/look", "there is no program at"),
    case(("[profile]\n", "[[companion]]\nprogram = \"./beside\"\n\n[profile]\n"), "companion.0.program", "./beside", "there is no program at"),
    case(("[profile]\n", "[[mcp_server]]\nname = \"notes\"\nprogram = \"./notes\"\narguments = []\n\n[profile]\n"), "mcp_server.0.program", "./notes", "there is no program at"),
];

/// Bounds of a parameter, which the sound deployment has none of.
#[rustfmt::skip]
const PARAMETERS: &[Case] = &[
    case(("at_least = 1", "at_least = 91, at_most = 90"), "grant.0.parameter_bounds.0.at_most", "at_most = 90", "no value is at least 91 and at most 90"),
    case(("at_least = 1", "one_of = []"), "grant.0.parameter_bounds.0.one_of", "one_of", "none of these"),
    case(("at_least = 1", "at_least = 5, one_of = [1, 2]"), "grant.0.parameter_bounds.0.one_of", "one_of", "none of these"),
    case(("at_least = 1", "one_of = [\"ten\"]"), "grant.0.parameter_bounds.0.one_of", "ten", "none of these"),
    case(("operation = \"file.finish\", parameter", "operation = \"file.start\", parameter"), "grant.0.parameter_bounds.0.operation", "file.start", "no operation is called"),
];

fn init(place: &Place) -> Called {
    place.call(&["--json", "init", place.path().to_str().unwrap()])
}

/// Founds each changed deployment and expects it refused at its field and line, with nothing prepared and no store.
fn check(sound: &str, cases: &[Case]) {
    let told = cases.iter().filter_map(|Case { change: (from, to), field, on, says }| {
        assert!(sound.contains(from), "the sound deployment has no `{from}`");
        let text = sound.replacen(from, to, 1);
        let place = Place::with(&text);
        let called = init(&place);
        let misfit: Value = serde_json::from_str(&called.stdout).unwrap_or_default();
        let line = usize::try_from(misfit["line"].as_u64().unwrap_or(0)).unwrap();
        let stands = line.checked_sub(1).and_then(|index| text.lines().nth(index)).unwrap_or_default();
        let reason = misfit["error"].as_str().unwrap_or_default();
        let fits = called.code == Some(1)
            && misfit["field"] == **field
            && stands.contains(on)
            && reason.contains(says)
            && misfit["file"].as_str().is_some_and(|file| file.ends_with("closer.toml"))
            && !place.path().join("var").exists();
        (!fits).then(|| format!("{field} ({to}): line {line} `{stands}`, {:?}: {misfit}", called.code))
    });
    let told: Vec<String> = told.collect();
    assert!(told.is_empty(), "{} of {}:\n{}", told.len(), cases.len(), told.join("\n"));
}

#[test]
fn a_name_that_nothing_is_declared_by_is_told() {
    check(&counting("conditional"), NAMES);
}

#[test]
fn a_contract_that_cannot_be_followed_is_told() {
    check(&counting("conditional"), CONTRACTS);
}

#[test]
fn a_bound_that_leaves_nothing_is_told() {
    check(&counting("conditional"), BOUNDS);
    let bounded = counting("conditional").replace(TYPED, TAKES_DAYS).replace(
        GRANTED,
        "allowed_operations = [\"file.finish\"]\nparameter_bounds = [{ operation = \"file.finish\", parameter = \"days\", at_least = 1 }]",
    );
    init(&Place::with(&bounded)).expect(0);
    check(&bounded, PARAMETERS);
}

#[test]
fn a_key_that_nothing_is_read_from_is_told() {
    check(&counting("conditional"), KEYS);
}

/// A program that is not there is told before anything is prepared; one that a preparation makes may still be missing.
#[test]
fn a_program_that_is_not_there_is_told() {
    check(&counting("conditional"), PROGRAMS);
    let made = "[[prepare]]\nprogram = \"cp\"\narguments = [\"/bin/sh\", \"var/world/sh\"]\ncreates = \"var/world/sh\"\n\n[profile]\n";
    let text = counting("conditional")
        .replace("[profile]\n", made)
        .replace("program = \"/bin/sh\"", "program = \"./var/world/sh\"");
    init(&Place::with(&text)).expect(0);
}

/// Bytes that are no text are told by line, column and the field in which they stand.
#[test]
fn bytes_that_are_no_text_are_told_by_their_place() {
    let text = counting("conditional");
    for (before, field) in [("text = \"Makes the file", "operation.0.text"), ("scope = [\"cou", "profile.scope.0")] {
        let at = text.find(before).unwrap() + before.len();
        let mut bytes = text.clone().into_bytes();
        bytes.insert(at, 0xff);
        let place = Place::with("");
        std::fs::write(place.path().join("closer.toml"), bytes).unwrap();
        let misfit = init(&place).expect(1).json();
        assert_eq!(
            (&misfit["field"], misfit["line"].as_u64()),
            (&Value::from(field), Some(text[..at].lines().count() as u64)),
            "{misfit}"
        );
        assert!(misfit["error"].as_str().unwrap().contains("UTF-8") && misfit["column"].is_u64(), "{misfit}");
    }
}

/// `run` founds too, and refuses as `init` does.
#[test]
fn run_refuses_before_it_prepares() {
    let place = Place::with(&counting("conditional").replace(GRANTED, "allowed_operations = [\"file.start\"]"));
    let misfit = place.run(&["--json"]).expect(1).json();
    assert_eq!(misfit["field"], "grant.0.allowed_operations.0", "{misfit}");
    assert!(!place.path().join("var").exists());
}

/// What a space is founded with is not judged again by the clock of a later run.
#[test]
fn a_founded_space_runs_on_when_its_file_has_aged() {
    let place = Place::with(&counting("conditional"));
    init(&place).expect(0);
    let aged = counting("conditional").replace("expiry = \"now+30d\"", "expiry = \"2020-01-01T00:00:00Z\"");
    std::fs::write(place.path().join("closer.toml"), aged).unwrap();
    place.run(&[]).expect(0);
}

#[test]
fn what_a_preparation_or_companion_fails_with_is_told_where_it_is_declared() {
    let failing = "program = \"/bin/sh\"\narguments = [\"-c\", \"echo broken >&2; exit 3\"]";
    let text = counting("conditional").replace("program = \"touch\"\narguments = [\"var/world/target\"]", failing);
    let place = Place::with(&text);
    let misfit = init(&place).expect(1).json();
    assert_eq!(misfit["field"], "prepare.0.program", "{misfit}");
    let line = text.lines().position(|line| line == "program = \"/bin/sh\"").unwrap() + 1;
    assert_eq!(misfit["line"], line, "{misfit}");
    assert!(misfit["error"].as_str().unwrap().contains("broken"), "{misfit}");
    assert!(!place.store().exists());

    let text =
        format!("{}\n[[companion]]\nprogram = \"/bin/false\"\nready = \"127.0.0.1:1\"\n", counting("conditional"));
    let place = Place::with(&text);
    let misfit = place.run(&["--json"]).expect(1).json();
    assert_eq!(misfit["field"], "companion.0.program", "{misfit}");
}

/// Whatever a folder is called, ids are made of it.
#[test]
fn a_folder_may_be_called_anything() {
    let outer = tempfile::tempdir().unwrap();
    for name in ["a b", "it's \"here\"", "ordner-ä", "   ", &"long".repeat(60)] {
        let folder = outer.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let text = counting("conditional").replace("scope = [\"count\"]\n", "");
        std::fs::write(folder.join("closer.toml"), text).unwrap();
        let called = crate::support::call(&["init", folder.to_str().unwrap()]);
        called.expect(0);
    }
}

/// An id names one thing, across the lists too, and the runtime's own are taken.
#[test]
fn an_id_is_taken_across_lists() {
    #[rustfmt::skip]
    let cases = [
        case(("actor_id = \"issuer.security\"", "actor_id = \"agent.worker\""), "identity.1.actor_id", "agent.worker", "is taken: line"),
        case(("actor_id = \"issuer.security\"", "actor_id = \"closer.observer\""), "identity.1.actor_id", "closer.observer", "the runtime's own"),
        case(("grant_id = \"grant.finish\"", "grant_id = \"file.finish\""), "grant.0.grant_id", "file.finish", "is taken: line"),
        case(("dependency_id = \"dependency.word\"", "dependency_id = \"dependency.count\""), "obligation.0.dependencies.1.dependency_id", "dependency.count", "is taken: line"),
    ];
    check(&counting("conditional"), &cases);
}

/// The folder is named once: by the verb or by `-C`.
#[test]
fn the_deployments_folder_is_named_by_either_and_must_be_there() {
    let place = Place::with(&counting("conditional"));
    place.call(&["init"]).expect(0);
    assert!(place.store().exists());
    place.call(&["run", "--until-idle"]).expect(0);
    let other = Place::with(&counting("conditional"));
    let two = place.call(&["run", other.path().to_str().unwrap()]).expect(2);
    assert!(two.stderr.contains("are two deployments; name one"), "{two:?}");
    assert!(!other.store().exists());
    for verb in [&["run"][..], &["init"], &["obligation", "list"], &["verify"]] {
        let absent = crate::support::call(&[&["--json", "-C", "/nonexist"], verb].concat()).expect(4);
        let told = absent.json();
        assert!(told["error"].as_str().unwrap().contains("-C DIR"), "{told}");
        assert_eq!((told.get("line"), told["file"].as_str()), (None, Some("/nonexist/closer.toml")), "{told}");
    }
}

/// Nobody installs here what this version cannot evaluate, in a file or by a verb.
#[test]
fn an_operator_of_another_version_is_not_installed() {
    let place = Place::with(&counting("conditional"));
    init(&place).expect(0);
    let reentry = place.path().join("reentry.toml");
    for predicate in ["{ operator = \"MoonFull\" }", "{ operator = \"All\", items = [{ operator = \"MoonFull\" }] }"] {
        let text =
            format!("reentry_id = \"reentry.new\"\nobligation_id = \"obligation.count\"\npredicate = {predicate}\n");
        std::fs::write(&reentry, text).unwrap();
        let refused = place.call(&["--json", "reentry", "register", reentry.to_str().unwrap()]).expect(3).json();
        assert_eq!(refused["code"], "unknown_version", "{refused}");
        assert!(refused["denials"][0]["offending"].as_str().unwrap().ends_with("operator"), "{refused}");
    }
    let nested = "{\"operator\":\"Any\",\"items\":[{\"operator\":\"MoonFull\"}]}";
    let refused = place.call(&["--json", "reentry", "test", "--json-text", nested]).expect(3).json();
    assert_eq!(refused["code"], "unknown_version", "{refused}");
    let listed = place.call(&["--json", "reentry", "list"]).expect(0).json();
    assert_eq!(listed["reentries"].as_array().map(Vec::len), Some(1), "{listed}");
}
