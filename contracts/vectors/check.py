#!/usr/bin/env python3
"""Checks every vector of this folder without any code of the project. Standard library alone; exits 1 on a difference.

Canonical JSON here is RFC 8785 for values without fractions: keys sorted by UTF-16 code units, the shortest escapes.
"""
import hashlib
import json
import pathlib
import struct
import sys

FOLDER = pathlib.Path(__file__).parent
INTEGER_MAX = 2**53 - 1
DEPTH_MAX = 128


def unique(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError("a key stands twice")
    return dict(pairs)


def integer(text):
    value = int(text)
    if abs(value) > INTEGER_MAX:
        raise ValueError("beyond 2^53 - 1")
    if text == "-0":
        raise ValueError("minus zero")
    return value


def refuse(text):
    raise ValueError(f"no such number here: {text}")


def walk(value, depth=0):
    if isinstance(value, (dict, list)):
        if depth == DEPTH_MAX:
            raise ValueError("too deep")
        inner = value if isinstance(value, list) else [*value.keys(), *value.values()]
        for one in inner:
            walk(one, depth + 1)
    elif isinstance(value, str):
        value.encode("utf-8")  # refuses lone surrogates


def read(data):
    value = json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_int=integer, parse_float=refuse,
                       parse_constant=refuse)
    walk(value)
    return value


def canonical(value):
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def read_canonical(data):
    value = read(data)
    if canonical(value).encode("utf-8") != data:
        raise ValueError("not canonical")
    return value


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_of(value):
    return digest(canonical(value).encode("utf-8"))


def raw(text):
    return bytes.fromhex(text.removeprefix("sha256:"))


def hash_parts(*parts):
    data = b"".join(struct.pack(">Q", len(part)) + part for part in parts)
    return digest(data)


def without(value, member):
    return {key: one for key, one in value.items() if key != member}


def check_canonical(vector):
    value = read(vector["input"].encode("utf-8"))
    form = canonical(value)
    return (form == vector["canonical"] and form.encode("utf-8").hex() == vector["canonical_hex"]
            and digest(form.encode("utf-8")) == vector["digest"])


def check_refused(vector):
    try:
        read_canonical(bytes.fromhex(vector["bytes_hex"]))
    except (ValueError, RecursionError):
        return True
    return False


def check_payload(vector):
    value = read_canonical(vector["canonical"].encode("utf-8"))
    return digest_of(without(value, "content_digest")) == vector["content_digest"] == value["content_digest"]


def check_digest(vector):
    whole = vector["object"]
    if "covers" in vector:
        part = {key: whole[key] for key in vector["covers"]}
    elif "all_but" in vector:
        part = without(whole, vector["all_but"])
    else:
        part = whole[vector["member"]]
    return digest_of(part) == vector["digest"]


def check_link(vector):
    body = digest(vector["body"].encode("utf-8"))
    record = hash_parts(b"closer.record.v1", vector["kind"].encode(), vector["id"].encode(), raw(body),
                        vector["admitted_at"].encode())
    previous = raw(vector["previous"]) if vector["previous"] else b""
    link = hash_parts(b"closer.link.v1", vector["stream"].encode(), struct.pack(">Q", vector["position"]), previous,
                      raw(record))
    return (body, record, link) == (vector["body_digest"], vector["record_digest"], vector["link_digest"])


def check_signature(vector):
    message = canonical({"content_digest": vector["content_digest"], "domain": "closer.signature.v1",
                         "identity": vector["identity"], "scope": vector["scope"]})
    public = bytes.fromhex(vector["public_key"])
    return (message == vector["message"] and digest(public) == vector["key_id"]
            and ed25519_public(bytes.fromhex(vector["seed_hex"])) == public
            and ed25519_verify(public, message.encode("utf-8"), bytes.fromhex(vector["signature"])))


def check_invalid(vector):
    """Digests can be judged without the contracts; of the other codes it is checked that the bytes are canonical."""
    value = read_canonical(vector["bytes"].encode("utf-8"))
    agrees = digest_of(without(value, "content_digest")) == value["content_digest"]
    logical = value["body"].get("logical_digest")
    if logical is not None:
        eight = ("operation target parameters expected_postcondition authority_ref relevant_semantic_version "
                 "registry_version idempotency_key").split()
        agrees = agrees and digest_of({key: value["body"][key] for key in eight}) == logical
    placeholder = len(value["content_digest"]) != len("sha256:") + 64
    return agrees == (vector["code"] != "digest_mismatch" and not placeholder)


# Ed25519, RFC 8032 §5.1, for checking alone: slow and not constant in time.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add(one, other):
    (x1, y1, z1, t1), (x2, y2, z2, t2) = one, other
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def recover(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != square or (x == 0 and sign):
        raise ValueError("no point")
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = recover((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def compress(point):
    x, y, z, _ = point
    inverse = pow(z, P - 2, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def ed25519_public(seed):
    half = bytearray(hashlib.sha512(seed).digest()[:32])
    half[0] &= 248
    half[31] = half[31] & 127 | 64
    return compress(multiply(int.from_bytes(half, "little"), BASE))


def ed25519_verify(public, message, signature):
    s = int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    return compress(multiply(s, BASE)) == compress(add(recover(signature[:32]), multiply(k, recover(public))))


CHECKS = {
    "canonical": check_canonical,
    "refused": check_refused,
    "payloads": check_payload,
    "digests": check_digest,
    "links": check_link,
    "signatures": check_signature,
    "invalid": check_invalid,
}


def main():
    failed = 0
    for name, check in CHECKS.items():
        vectors = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["vectors"]
        for vector in vectors:
            if not check(vector):
                failed += 1
                print(f"{name}: {vector.get('name') or vector.get('id') or vector.get('scope')}: differs")
        print(f"{name}: {len(vectors)} vectors")
    unknown = {path.stem for path in FOLDER.glob("*.json")} - set(CHECKS) - {"refusals"}
    if unknown:
        failed += 1
        print(f"no check for {sorted(unknown)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
