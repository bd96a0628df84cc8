"""Connects with the official SDK for Python, lists the tools, calls some of them, and writes the results.

Reads {"mode": "legacy" or "auto", "url", "token", "calls": [[tool, arguments, awaited], ...], "answer"} from standard input.
An argument {"result": n, "path": [key, ...]} stands for a value in the structured content of the result n. "awaited" is
optional: a path such as the above. The call is repeated until there is a value in its result. "answer" is optional, too:
"accept" or "decline", which the client's user answers to every question of the server; without it, the client cannot ask.
Writes {"version", "server", "tools", "results", "questions"} or, if the SDK raised an exception, {"error"}.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

REPEAT_AFTER_S = 0.1
MOST_REPETITIONS = 600


async def run(task):
    headers = {"Authorization": f"Bearer {task['token']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(task["url"], http_client=http)
        questions = []
        ask = user(task.get("answer"), questions)
        async with Client(transport, mode=task["mode"], elicitation_callback=ask) as client:
            # The list first, because the SDK checks results with the schemas in it.
            listed = await client.list_tools()
            results = []
            for name, arguments, *awaited in task["calls"]:
                arguments = {key: inserted(value, results) for key, value in arguments.items()}
                results.append(await call_until(client, name, arguments, awaited))
            return {
                "version": client.protocol_version,
                "server": plain(client.server_info),
                "tools": [plain(tool) for tool in listed.tools],
                "results": results,
                "questions": questions,
            }


def user(answer, questions):
    if answer is None:
        return None

    async def ask(_context, params):
        questions.append(params.message)
        return ElicitResult(action=answer, content={} if answer == "accept" else None)

    return ask


def inserted(value, results):
    if not isinstance(value, dict):
        return value
    return value_at(value["path"], results[value["result"]])


def value_at(path, result):
    content = result.get("structuredContent")
    for key in path:
        try:
            content = content[key]
        except (IndexError, KeyError, TypeError):
            return None
    return content


async def call_until(client, name, arguments, awaited):
    result = await call(client, name, arguments)
    for _ in range(MOST_REPETITIONS):
        if all(value_at(path, result) is not None for path in awaited):
            break
        await asyncio.sleep(REPEAT_AFTER_S)
        result = await call(client, name, arguments)
    return result


async def call(client, name, arguments):
    try:
        return plain(await client.call_tool(name, arguments))
    except Exception as error:  # noqa: BLE001 - any exception of the SDK is a result
        return {"error": repr(error)}


def plain(model):
    return model and model.model_dump(mode="json", by_alias=True, exclude_none=True)


def innermost(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)


try:
    written = asyncio.run(run(json.load(sys.stdin)))
except BaseException as error:  # noqa: BLE001 - as above
    written = {"error": innermost(error)}
print(json.dumps(written))
