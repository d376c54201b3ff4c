#!/usr/bin/env python3
"""An agent as a process: looks at its account once a day, trades nothing, and ends every decision point.

Standard library only. One JSON object per line: requests come on standard input, answers go to standard output, and standard error is
free for logs. Replace `decide` with an agent of your own.
"""

import json
import sys


def decide(request):
    """Gives the text and the calls of one turn: a list of (tool, arguments)."""
    offered = {tool["function"]["name"] for tool in request["tools"]}
    asked = [
        call["function"]["name"]
        for message in request["messages"]
        if message["role"] == "assistant"
        for call in message.get("tool_calls") or []
    ]
    if "get_portfolio" in offered and "get_portfolio" not in asked:
        return "First I look at the account.", [("get_portfolio", {})]
    if "finish_day" in offered:
        return "", [("finish_day", {"summary": "Looked and did nothing."})]
    if "complete_phase" in offered:
        return "", [("complete_phase", {"decision": "monitor", "summary": "Nothing to do."})]
    return "Nothing to do.", []


def send(line):
    print(json.dumps(line, ensure_ascii=False), flush=True)


def main():
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    for text in sys.stdin:
        line = json.loads(text)
        if line["type"] == "hello":
            send({"type": "hello", "protocol": 1, "name": "cautious"})
        elif line["type"] == "request":
            content, calls = decide(line)
            send({
                "type": "answer",
                "id": line["id"],
                "content": content,
                "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
            })
        elif line["type"] == "end":
            return


if __name__ == "__main__":
    main()
