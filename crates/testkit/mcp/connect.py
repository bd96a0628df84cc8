"""Connects with the official SDK for Python as a person would: the client gets a 401, finds the authorization server,
registers, and sends the person there, who signs in with an invitation and approves.

Reads {"url", "invitation", "password", "approve": [scope, ...], "calls": [[tool, arguments], ...]} from standard input.
Writes {"client", "scope", "shown", "askedAgain", "results"} or, if the SDK raised an exception, {"error"}.
"shown" is the page that the person saw, "askedAgain" the scope of a second authorization request.
"""

import asyncio
import json
import re
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

REDIRECT = "http://127.0.0.1:33418/callback"


class Memory:
    """Stores the tokens and the registration of the client."""

    tokens = None
    client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Person:
    """Somebody with a browser."""

    def __init__(self, task):
        self.task = task
        self.shown = None
        self.answer = None
        self.asked_again = None

    async def approve(self, authorize):
        """Signs in and approves the scopes of the task. Refuses a second request."""
        if self.shown:
            self.asked_again = parse_qs(urlsplit(authorize).query)["scope"][0]
            raise PermissionError("the person approves no more")
        async with httpx2.AsyncClient(follow_redirects=True, timeout=30) as browser:
            link = self.task["invitation"]
            page = await browser.get(link)
            password = self.task["password"]
            form = {"form_token": form_token(page.text), "password": password, "repeated": password}
            page = await browser.post(link, data=form, headers={"Origin": origin(link)})
            page.raise_for_status()
            page = await browser.get(authorize)
            page.raise_for_status()
            self.shown = page.text
            form = {
                "form_token": form_token(page.text),
                "scope": self.task["approve"],
                "decision": "approve",
            }
            consent = str(page.url)
            headers = {"Origin": origin(consent)}
            page = await browser.post(consent, data=form, headers=headers, follow_redirects=False)
            self.answer = page.headers["location"]

    async def authorization_code(self):
        """The result of the redirect to the client."""
        result = {name: values[0] for name, values in parse_qs(urlsplit(self.answer).query).items()}
        return AuthorizationCodeResult(code=result["code"], state=result.get("state"), iss=result.get("iss"))


def form_token(page):
    """The token of the page's own form, which follows the form for signing out."""
    return re.findall(r'name="form_token" value="([^"]+)"', page)[-1]


def origin(url):
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


async def run(task):
    person, memory = Person(task), Memory()
    metadata = OAuthClientMetadata(client_name="Python SDK", redirect_uris=[REDIRECT])
    auth = OAuthClientProvider(
        task["url"], metadata, memory, redirect_handler=person.approve, callback_handler=person.authorization_code
    )
    results = []
    try:
        async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
            transport = streamable_http_client(task["url"], http_client=http)
            async with Client(transport) as client:
                await client.list_tools()
                for name, arguments in task["calls"]:
                    answer = await client.call_tool(name, arguments)
                    results.append(answer.model_dump(mode="json", by_alias=True, exclude_none=True))
    except BaseException:
        # The SDK closes the connection if the person refuses.
        if not person.asked_again:
            raise
    return {
        "client": memory.client.client_name,
        "scope": memory.tokens.scope,
        "shown": person.shown,
        "askedAgain": person.asked_again,
        "results": results,
    }


def innermost(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)


try:
    written = asyncio.run(run(json.load(sys.stdin)))
except BaseException as error:  # noqa: BLE001 - any exception of the SDK is a result
    written = {"error": innermost(error)}
print(json.dumps(written))
