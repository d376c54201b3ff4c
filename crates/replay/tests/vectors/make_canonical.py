"""Makes canonical.json: cases of the canonical form, version 1, computed without any of our Rust code.

Run with `python3 make_canonical.py` in this folder. The output is committed and frozen: a case may be added, never changed.
The writer below follows RFC 8785 by hand, with integers of 64 bits printed in full.
"""

import hashlib
import json


def number(value):
    if isinstance(value, int):
        return str(value)
    if value == 0:
        return "0"
    if value < 0:
        return "-" + number(-value)
    # repr gives the shortest digits; ECMAScript (Number::toString) arranges the same digits its own way.
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or "0")
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    k, n = len(digits), point
    if k <= n <= 21:
        return digits + "0" * (n - k)
    if 0 < n <= 21:
        return digits[:n] + "." + digits[n:]
    if -6 < n <= 0:
        return "0." + "0" * -n + digits
    sign = "+" if n - 1 >= 0 else "-"
    tail = "." + digits[1:] if k > 1 else ""
    return f"{digits[0]}{tail}e{sign}{abs(n - 1)}"


SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def string(text):
    return '"' + "".join(SHORT.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 0x20 else c) for c in text) + '"'


def canonical(value):
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return "{" + ",".join(string(key) + ":" + canonical(value[key]) for key in keys) + "}"
    return number(value)


# Inputs are JSON texts, because the spelling of a number is part of the case.
CASES = {
    "empty object": "{}",
    "empty array": "[]",
    "empty string": '""',
    "null": "null",
    "nested with keys out of order": '{"b":{"z":[1,{"y":null,"x":true}],"a":false},"a":[[],{}]}',
    "spaces do not count": ' { "a" : [ 1 , 2 ] ,\n"b" : "x y" } ',
    "cjk": '{"名称":"贵州茅台","代码":"600519"}',
    "emoji and a plane-2 character": '["\\ud83d\\ude80","🚀","\\ud842\\udfb7"]',
    "line separators stay as they are": '"a\\u2028b\\u2029c\\u0085d\\u007fe\\ufeff"',
    "control characters": '"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\\\/"',
    "utf-16 key order": '{"\\uff21":1,"\\ud83d\\ude80":2,"\\u20ac":3,"z":4,"":5,"\\ue000":6}',
    "combining characters are not normalised": '["\\u00e9","e\\u0301"]',
    "1e16": "1e16",
    "1e-7": "1e-7",
    "0.1+0.2": "0.30000000000000004",
    "minus zero": "-0",
    "minus zero point zero": "-0.0",
    "smallest double": "5e-324",
    "largest double": "1.7976931348623157e308",
    "100.0": "100.0",
    "100": "100",
    "1e2": "1e2",
    "edge of positional text": "[1e20,1e21,123456789012345680000.0,1e22]",
    "small positional text": "[0.000001,0.0000012,1e-6,9.5e-7]",
    "prices": "[10.25,1402.00,0.01,-3.14,33.333333333333336]",
    "integers beyond 2^53": "[9007199254740991,9007199254740992,9007199254740993,-9007199254740993]",
    "64-bit limits": "[9223372036854775807,-9223372036854775808,18446744073709551615]",
    "doubles beyond 2^53": "[9007199254740994.0,9223372036854775808.0,1.8446744073709552e19]",
    "a chat request": json.dumps(
        {
            "messages": [
                {"role": "system", "content": "You trade A-shares."},
                {"role": "user", "content": "开盘 09:30, 价格 ≥ 10.25\n"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "get_kline", "arguments": '{"days": 5}'}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": '{"success": true, "close": 10.25}'},
            ],
            "sampling": {"temperature": 0.7, "top_p": 1.0, "seed": 7},
        }
    ),
}

# The whole request and the fingerprint it must have.
REQUESTS = {
    "empty": {"model": "", "contract_version": "", "sampling": {}, "system": None, "tools": [], "messages": []},
    "one of everything": {
        "model": "some-model-1",
        "contract_version": "v5",
        "sampling": {"temperature": 0.0, "max_tokens": 4096, "tool_choice": "auto"},
        "system": "You trade 股票 🚀.",
        "tools": [
            {
                "type": "function",
                "function": {"name": "get_kline", "description": "Daily bars.", "parameters": {"type": "object"}},
            }
        ],
        "messages": [{"role": "user", "content": "Day 1."}],
    },
}


def digest(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def reference(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def main():
    cases = []
    for name, text in CASES.items():
        value = json.loads(text, parse_int=lambda digits: -0.0 if digits == "-0" else int(digits))
        form = canonical(value)
        cases.append({"name": name, "input": text, "canonical": form, "sha256": digest(form)})
    requests = []
    for name, request in REQUESTS.items():
        form = canonical({"canonical_version": 1, **request})
        system = [{"role": "system", "content": request["system"]}] if request["system"] is not None else []
        peer = {"messages": system + request["messages"], "tools": request["tools"]}
        requests.append(
            {"name": name, "request": request, "sha256": digest(form), "reference_sha256": digest(reference(peer))}
        )
    texts = []
    for text in [
        "[1e16,1e-7,0.00001,0.0001,0.30000000000000004,100.0,-0.0,5e-324,1.5e300,123456.789,1e15,9999999999999998.0,-2.5e-5]",
        '{"b":1,"\\uff21":1,"\\ud83d\\ude80":"\\u2028\\u007f\\u0001\\n","名":[true,null,12345678901234567890]}',
    ]:
        value = json.loads(text)
        texts.append({"input": text, "text": reference(value), "sha256": digest(reference(value))})
    body = {"canonical_version": 1, "cases": cases, "requests": requests, "reference_texts": texts}
    with open("canonical.json", "w", encoding="utf-8", newline="\n") as out:
        json.dump(body, out, ensure_ascii=True, indent=1)
        out.write("\n")


main()
