"""Plays a session over HTTP with nothing but the standard library: http_day.py URL TOKEN_FILE STOCK_CODE

It looks at that stock each morning, buys a hundred shares once, completes every phase, and prints the account at the end of the
window. Every request that changes something has a key, so it can be sent again after a broken connection.
"""

import json
import sys
import urllib.error
import urllib.request
import uuid


class Desk:
    """A served session, as its owner uses it."""

    def __init__(self, url, token):
        self.url, self.token, self.session = url, token, None

    def ask(self, method, path, body=None, key=None):
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        if method == "POST":
            request.add_header("Idempotency-Key", key or uuid.uuid4().hex)
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body or {}).encode()
        try:
            with urllib.request.urlopen(request, timeout=150) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            return json.load(refused)  # An error record: error_code, message, retryable, details.

    def open(self):
        self.session = self.ask("POST", "/v1/sessions")["session_id"]

    def state(self):
        return self.ask("GET", f"/v1/sessions/{self.session}")

    def call(self, tool, **arguments):
        return self.ask("POST", "/v1/tool-invocations", {"session_id": self.session, "tool": tool, "input": arguments})


def play(desk, stock):
    desk.open()
    bought = False
    while True:
        state = desk.state()
        if state["finished"]:
            break
        print(state["day"], state["point"], flush=True)
        if state["point"] == "pre_market":
            bars = desk.call("get_kline", stock_code=stock, days=5)
            print("  bars:", bars.get("status") or bars["message"])
        if state["point"] == "open_1" and not bought:
            order = desk.call("place_order", stock_code=stock, action="buy", quantity=100, reasoning="A first position.")
            bought = "error_code" not in order
            print("  order:", order.get("status") or order["message"])
        if state["point"] == "close_2":
            done = desk.call("finish_day", summary="Nothing more to do today.")
        else:
            decision = "trade_complete" if state["point"] == "open_1" and bought else "no_trade"
            done = desk.call("complete_phase", decision=decision, summary="Nothing more to do here.")
        if "error_code" in done:
            sys.exit(done["message"])
    account = desk.ask("GET", f"/v1/sessions/{desk.session}/account")
    desk.ask("POST", f"/v1/sessions/{desk.session}/close")
    print(json.dumps(account))


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        play(Desk(sys.argv[1], file.read().strip()), sys.argv[3])
