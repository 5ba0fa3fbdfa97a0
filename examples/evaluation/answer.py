"""A participant in plain Python: follows the claim in its packet where a grant allows what it says, else keeps the gap open.

Reads one WORK as JSON on stdin and writes one answer on stdout. It needs nothing but Python.
"""

import hashlib
import json
import sys


def next_step(work):
    """The RESULT for a packet."""
    items = [item["content"] for item in work["context_items"]]
    claim = next((item for item in items if item.get("item") == "claim"), None)
    grants = [item for item in items if item.get("item") == "grant"]
    result = {
        "work_id": work["work_id"],
        "claims": [],
        "action_proposals": [],
        "assessments": [],
        "objections": [],
        "unresolved": [],
        "skill_receipts": [],
    }
    for grant in grants:
        for bound in grant["parameter_bounds"]:
            if claim and claim["proposition"]["object"] in (bound["one_of"] or []):
                result["action_proposals"] = [proposal(work, grant, bound, claim["proposition"]["object"])]
                return result
    result["unresolved"] = [
        {"subject": work["question"]["subject_refs"][0], "need": "evidence", "text": "Nothing here settles it."}
    ]
    return result


def proposal(work, grant, bound, value):
    """The step that the claim speaks for, within the grant."""
    return {
        "operation": bound["operation"],
        "target": grant["targets"][0],
        "parameters": {bound["parameter"]: value},
        "expected_postcondition": {
            "id": work["question"]["subject_refs"][0],
            "expectations": [{"field": bound["parameter"], "comparison": "equals", "value": value}],
        },
    }


def main():
    packet = sys.stdin.buffer.read().rstrip(b"\n")
    answer = {
        "result": next_step(json.loads(packet)),
        "packet": "sha256:" + hashlib.sha256(packet).hexdigest(),
        "usage": {"calls": 1, "input_tokens": 0, "output_tokens": 0},
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
