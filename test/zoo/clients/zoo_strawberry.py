"""GraphQL over HTTP, and a subscription over a WebSocket."""

import json

import httpx
import websockets

ASKED = {"query": "query ($n: String!) { hello(name: $n) }", "variables": {"n": "x"}}


async def ask(base):
    async with httpx.AsyncClient(base_url=base, trust_env=False) as client:
        answer = await client.post("/graphql", json=ASKED)
        assert answer.json() == {"data": {"hello": "hello x"}}, answer.text
    address = base.replace("http", "ws", 1) + "/graphql"
    names = ["graphql-transport-ws"]
    async with websockets.connect(address, subprotocols=names, proxy=None) as socket:
        await socket.send(json.dumps({"type": "connection_init"}))
        assert json.loads(await socket.recv())["type"] == "connection_ack"
        payload = {"query": "subscription { count(to: 3) }"}
        await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))
        told = [json.loads(await socket.recv()) for _ in range(4)]
        counted = [one["payload"]["data"]["count"] for one in told[:3]]
        assert (counted, told[3]["type"]) == ([1, 2, 3], "complete"), told
