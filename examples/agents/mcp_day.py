"""Plays a trading day through the official MCP SDK for Python (pip install mcp), over stdio or HTTP.

    python3 mcp_day.py --stock CODE traderharness mcp --start 2020-02-04 --mask none
    TRADERHARNESS_TOKEN=... python3 mcp_day.py --stock CODE http://127.0.0.1:8750/mcp

A model takes the place of `decide`: it gets the brief and the tools, and its calls go where those of this file go.
"""

import argparse
import asyncio
import json
import os
import uuid

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
import httpx2


def connect(target):
    if target[0].startswith(("http://", "https://")):
        headers = {"Authorization": "Bearer " + os.environ["TRADERHARNESS_TOKEN"]}
        headers["traderharness-session"] = "key:" + uuid.uuid4().hex  # A session of its own; the same label leads back to it.
        return streamable_http_client(target[0], http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))


async def decide(client, point, stock):
    """Repairs a faulty call as a model would: by what the failure says."""
    if point == "pre_market":
        failed = await client.call_tool("get_kline", {"stock_code": stock[-3:]})
        record = json.loads(failed.content[0].text)
        example = record["correction"]["valid_arguments_example"]
        print("repaired:", ", ".join(sorted(example)))
        bars = await client.call_tool("get_kline", {"stock_code": stock, "days": 5})
        print("bars:", bars.structured_content["status"])
    if point == "open_1":
        order = {"stock_code": stock, "action": "buy", "quantity": 1000, "reasoning": "An example."}
        bought = await client.call_tool("place_order", order)
        print("bought 1000" if not bought.is_error else bought.content[0].text)


async def play(target, era, stock):
    async with Client(connect(target), mode=era) as client:
        while True:
            # The client checks results against the schemas of the list that it read last; the list may change with the clock.
            await client.list_tools()
            brief = (await client.call_tool("read_brief", {})).structured_content
            if brief["finished"]:
                print("the session has ended")
                return
            await decide(client, brief["decision_point"], stock)
            if brief["decision_point"] == "close_2":
                ended = await client.call_tool("finish_day", {"summary": "An example."})
            else:
                ended = await client.call_tool("complete_phase", {"decision": "monitor", "summary": "An example."})
            if ended.is_error:
                raise SystemExit(ended.content[0].text)
            after = (await client.call_tool("read_brief", {})).structured_content
            print(brief["decision_point"], "->", "the end" if after["finished"] else after["decision_point"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", default="auto", choices=["auto", "legacy"], help="protocol with or without a handshake")
    parser.add_argument("--stock", required=True, metavar="CODE", help="the stock to look at and to buy")
    parser.add_argument("target", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    asyncio.run(play(options.target, options.era, options.stock))
