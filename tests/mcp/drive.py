"""The official Python SDK as an agent: over standard input and output or over HTTP, with and without a handshake.

    drive.py stdio legacy|auto CLOSER DEPLOYMENT
    drive.py http  legacy|auto URL TOKEN
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

TOOLS = [
    "closer_work_list",
    "closer_work_take",
    "closer_work_read",
    "closer_work_return",
    "closer_work_why",
    "closer_packet_follow",
]


def empty(work_id):
    lists = ["claims", "action_proposals", "assessments", "objections", "unresolved", "skill_receipts"]
    return {"work_id": work_id, **{name: [] for name in lists}}


async def refused(client, code, tool, arguments):
    told = await client.call_tool(tool, arguments)
    assert told.is_error, (tool, told)
    assert told.structured_content["code"] == code, (tool, told.structured_content)
    assert told.structured_content["next"], told.structured_content


async def drive(client):
    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == TOOLS, listed
    work = (await client.call_tool("closer_work_list", {})).structured_content["work"]
    await refused(client, "schema_invalid", "closer_work_list", {"all": "yes"})
    await refused(client, "unresolved_ref", "closer_work_read", {"work_id": "work-unknown"})
    if work:
        work_id = work[0]["work_id"]
        packet = (await client.call_tool("closer_work_read", {"work_id": work_id})).structured_content["packet"]
        assert packet["work_id"] == work_id
        told = await client.call_tool("closer_work_return", {"work_id": work_id, "answer": empty(work_id)})
        assert not told.is_error, told
        await refused(client, "duplicate", "closer_work_return", {"work_id": work_id, "answer": empty(work_id)})
        why = (await client.call_tool("closer_work_why", {"work_id": work_id})).structured_content["work"]
        assert why["standing"] == "answered", why
    return {"work": len(work), "revision": client.protocol_version}


async def main():
    kind, mode, *rest = sys.argv[1:]
    if kind == "stdio":
        closer, deployment = rest
        parameters = StdioServerParameters(command=closer, args=["--as", "agent.clerk", "mcp", deployment])
        async with Client(stdio_client(parameters), mode=mode) as client:
            print(json.dumps(await drive(client)))
    else:
        url, token = rest
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                print(json.dumps(await drive(client)))


asyncio.run(main())
