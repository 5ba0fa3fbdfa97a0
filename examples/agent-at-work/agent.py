"""An agent in one file, over HTTP, with nothing but Python's own library: takes its work and answers it, for a while.

    python3 agent.py http://127.0.0.1:8460 TOKEN [SECONDS]
"""

import json
import sys
import time
import urllib.error
import urllib.request

URL, TOKEN = sys.argv[1], sys.argv[2]
UNTIL = time.monotonic() + float(sys.argv[3] if len(sys.argv) > 3 else 20)
WANTED = "open from 9 to 5"


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    request = urllib.request.Request(URL + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as refused:
        problem = json.load(refused)
        sys.exit(f"refused: {problem['code']}: {problem['detail']}")


def relation(evidence):
    """That an observation supports what is asked: cited with where it stands in its stream, so that it can be checked."""
    binding = evidence["target_binding"]
    return {
        "proposition_id": "notice-says-hours",
        "evidence_id": evidence["evidence_id"],
        "reference_status": "resolved",
        "scope_match": "applicable",
        "relation": "supports",
        "valid_at": {
            "observed_at": evidence["observed_at"],
            "observation_sequence_ref": binding["observation_sequence_ref"],
            "observation_version": binding["observation_version"],
            "target_version": binding["target_version"],
        },
        "limitations": evidence["limitations"],
    }


def proposal():
    return {
        "operation": "notice.write",
        "target": {"type": "notice", "account": "local", "address": "office-hours.txt"},
        "parameters": {"text": WANTED},
        "expected_postcondition": {
            "id": "notice-says-hours",
            "expectations": [{"field": "content", "comparison": "equals", "value": WANTED}],
        },
    }


def answer(packet):
    """A RESULT: every list is there, and empty where there is nothing to say."""
    items = [item["content"] for item in packet["context_items"]]
    observed = [item for item in items if isinstance(item, dict) and "observation" in item]
    says_it = observed and observed[-1]["observation"]["value"].get("content") == WANTED
    return {
        "work_id": packet["work_id"],
        "claims": [],
        "action_proposals": [] if says_it else [proposal()],
        "assessments": [relation(observed[-1])] if says_it else [],
        "objections": [],
        "unresolved": [],
        "skill_receipts": [],
    }


while time.monotonic() < UNTIL:
    packet = ask("POST", "/v1/work/take")["packet"]
    if packet is None:
        time.sleep(0.1)
        continue
    ask("POST", f"/v1/work/{packet['work_id']}/result", answer(packet))
    print(f"answered {packet['work_id']}")
