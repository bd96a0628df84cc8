"""Callbacks: delivery reports, inbound messages, results of lookups, changes of senders."""

import base64
import binascii
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

TOLERANCE_S = 300
MAX_BODY_BYTES = 1024 * 1024

_log = logging.getLogger(__name__)


class SignatureError(Exception):
    """A callback that the account's secret did not sign, or that is too old."""


class Callback(NamedTuple):
    kind: Literal["report", "inbound", "lookup", "sender"]
    #: The same when a callback comes again.
    id: str
    #: One of `DeliveryReport`, `InboundMessage`, `LookupResult`, `SenderNotification`.
    data: dict[str, Any]


def verify_signature(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> None:
    """Raises `SignatureError` unless the callback is signed with the secret. `body` is what came, byte for byte."""
    names = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp = names["webhook-id"], names["webhook-timestamp"]
        signatures = names["webhook-signature"]
    except KeyError as missing:
        raise SignatureError(f"The header {missing} is missing.") from None
    present = time.time() if now is None else now
    # `int` takes no more than 4,300 digits.
    is_number = re.fullmatch("[0-9]{1,12}", timestamp)
    if not is_number or abs(present - int(timestamp)) > tolerance_s:
        raise SignatureError("The callback is too old, or its time is wrong.")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{id}.{timestamp}.".encode() + body
    expected = hmac.new(key, signed, hashlib.sha256).digest()
    # While a secret is replaced, there are two.
    if not any(_fits(signature, expected) for signature in signatures.split(" ")):
        raise SignatureError("No signature of the callback fits the secret.")


def _fits(signature: str, expected: bytes) -> bool:
    version, _, text = signature.partition(",")
    try:
        return version == "v1" and hmac.compare_digest(base64.b64decode(text), expected)
    except (binascii.Error, ValueError):
        return False


def read_callback(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> Callback:
    """Verifies a callback and tells what it is."""
    verify_signature(secret, headers, body, tolerance_s=tolerance_s, now=now)
    names = {name.lower(): value for name, value in headers.items()}
    data = json.loads(body)
    return Callback(_kind(data), names["webhook-id"], data)


def _kind(data: dict[str, Any]) -> Literal["report", "inbound", "lookup", "sender"]:
    if "previousStatus" in data:
        return "sender"
    if "received" in data:
        return "inbound"
    return "report" if "status" in data else "lookup"


def wsgi_handler(secret: str, receive: Callable[[Callback], None]) -> Callable[..., Iterable[bytes]]:
    """A WSGI application that receives callbacks: mount it in Flask, or serve it alone."""

    def handle(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {
            name[5:].replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        length = environ.get("CONTENT_LENGTH") or "0"
        if not re.fullmatch("[0-9]{1,12}", length) or int(length) > MAX_BODY_BYTES:
            status, text = 413, "The body is too large."
        else:
            body = environ["wsgi.input"].read(int(length))
            status, text = _answer(secret, headers, body, receive)
        start_response(f"{status} {_REASONS[status]}", [("Content-Type", "text/plain")])
        return [text.encode()]

    return handle


_REASONS = {
    200: "OK",
    401: "Unauthorized",
    413: "Content Too Large",
    500: "Internal Server Error",
}


def _answer(
    secret: str, headers: Mapping[str, str], body: bytes, receive: Callable[[Callback], None]
) -> tuple[int, str]:
    try:
        receive(read_callback(secret, headers, body))
    except SignatureError as error:
        return 401, str(error)
    except Exception:
        return _failed()
    return 200, "OK"


def _failed() -> tuple[int, str]:
    _log.exception("A callback could not be handled; it will come again.")
    return 500, "The callback could not be handled."


def asgi_handler(
    secret: str, receive: Callable[[Callback], Awaitable[None]]
) -> Callable[..., Awaitable[None]]:
    """An ASGI application that receives callbacks: mount it in FastAPI or Starlette, or serve it alone."""

    async def handle(scope: dict[str, Any], read: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise RuntimeError("Callbacks come by HTTP; other scopes are not handled.")
        body = bytearray()
        while len(body) <= MAX_BODY_BYTES:
            message = await read()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if len(body) > MAX_BODY_BYTES:
            status, text = 413, "The body is too large."
        else:
            status, text = await _answer_async(secret, headers, bytes(body), receive)
        plain = [(b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": status, "headers": plain})
        await send({"type": "http.response.body", "body": text.encode()})

    return handle


async def _answer_async(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    receive: Callable[[Callback], Awaitable[None]],
) -> tuple[int, str]:
    try:
        await receive(read_callback(secret, headers, body))
    except SignatureError as error:
        return 401, str(error)
    except Exception:
        return _failed()
    return 200, "OK"
