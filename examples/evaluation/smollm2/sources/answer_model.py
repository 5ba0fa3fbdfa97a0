"""A participant that asks a language model behind an OpenAI-compatible endpoint (`MODEL_URL`, `MODEL_NAME`).

The model is shown what the packet holds and answers with one of the allowed steps. What it took is passed on as the endpoint tells
it; an answer that is no JSON is passed on as it is, and counts as malformed.
"""

import hashlib
import json
import os
import sys
import urllib.request

from answer import next_step, proposal


def shown(work):
    """What the packet says, in a few lines, and the values that a grant allows."""
    lines, options = [f"Question: {work['question']['text']}"], []
    for item in (item["content"] for item in work["context_items"]):
        if item.get("item") == "claim":
            said = item["proposition"]
            lines.append(f"Known: {said['predicate']} is {json.dumps(said['object'])}.")
        elif item.get("item") == "grant":
            for bound in item["parameter_bounds"]:
                options += [(item, bound, value) for value in bound["one_of"] or []]
        elif "observation" in item:
            lines.append(f"Observed now: {json.dumps(item['observation']['value'])}.")
    return lines, options


def request(lines, values, seed):
    choices = values + ["ask the user", "more evidence is needed"]
    schema = {
        "type": "object",
        "properties": {"choice": {"type": "string", "enum": choices}},
        "required": ["choice"],
        "additionalProperties": False,
    }
    text = "\n".join(lines) + "\nChoose one: " + ", ".join(choices) + '. Answer as {"choice": "..."}.'
    return {
        "model": os.environ.get("MODEL_NAME", "model"),
        "messages": [{"role": "user", "content": text}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "step", "schema": schema}},
        "max_tokens": 24,
        "temperature": 0.7,
        "seed": seed,
    }


def ask(body):
    sent = urllib.request.Request(
        os.environ["MODEL_URL"] + "/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(sent, timeout=300) as response:
        return json.load(response)


def usage(answer):
    """Only what the endpoint says; what it does not say stays out, and is unknown."""
    told = answer.get("usage") or {}
    details = told.get("prompt_tokens_details") or {}
    reasoning = (told.get("completion_tokens_details") or {}).get("reasoning_tokens")
    parts = {
        "calls": 1,
        "input_tokens": told.get("prompt_tokens"),
        "output_tokens": told.get("completion_tokens"),
        "reasoning_tokens": reasoning,
        "cached_tokens": details.get("cached_tokens"),
        "served_model": answer.get("model"),
        "fingerprint": answer.get("system_fingerprint"),
        "finish_reason": (answer.get("choices") or [{}])[0].get("finish_reason"),
    }
    return {name: part for name, part in parts.items() if part is not None}


def main():
    packet = sys.stdin.buffer.read().rstrip(b"\n")
    work = json.loads(packet)
    lines, options = shown(work)
    values = [value for _, _, value in options]
    # The seed is the run's own; endpoints take 32 bits of it.
    answer = ask(request(lines, values, int(os.environ["CLOSER_EVAL_SEED"]) % 2**31))
    content = answer["choices"][0]["message"]["content"]
    told = {"packet": "sha256:" + hashlib.sha256(packet).hexdigest(), "usage": usage(answer)}
    try:
        choice = json.loads(content)["choice"]
    except (ValueError, KeyError, TypeError):
        json.dump({"result": content, **told}, sys.stdout)
        return
    result = next_step({**work, "context_items": []})
    chosen = next((option for option in options if option[2] == choice), None)
    if chosen:
        result["action_proposals"] = [proposal(work, *chosen)]
        result["unresolved"] = []
    elif choice == "ask the user":
        result["unresolved"][0].update(need="preference", text="What should be done?")
    json.dump({"result": result, **told}, sys.stdout)


if __name__ == "__main__":
    main()
