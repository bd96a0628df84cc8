"""Requests with retries."""

import http.client
import json
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from typing import Any

MAX_WAIT_S = 60.0
FIRST_WAIT_S = 0.5
RETRIED = {429, 500, 502, 503, 504}


class ApiError(Exception):
    """An answer of the service with a status other than 200."""

    def __init__(self, status: int, message: str, headers: Message) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        #: The service error code, if the catalogue has one.
        self.error_code = _number(headers.get("X-Error-Code"))
        self.retry_after_s = _number(headers.get("Retry-After"))
        self.required_permission = headers.get("X-Required-Permission")
        self.request_id = headers.get("X-Request-Id")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token must not follow a redirect to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Transport:
    def __init__(
        self, base_url: str, token: str, header_prefix: str, retries: int, timeout_s: float
    ) -> None:
        if not base_url.startswith(("https://", "http://")) or not token:
            raise ValueError("Give base_url with https:// and token.")
        self._base_url = base_url.rstrip("/")
        self._token_header = {f"{header_prefix}-Token": token}
        self._retries = retries
        self._timeout_s = timeout_s
        self._opener = urllib.request.build_opener(_NoRedirects)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
        safe: bool = False,
    ) -> tuple[Any, Message]:
        """`safe`: a repetition changes nothing, so the request is repeated after a failure."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        url = self._base_url + path + ("?" + urllib.parse.urlencode(given) if given else "")
        headers = {"Accept": "application/json", **self._token_header}
        data = None
        if body is not None:
            # The repetition must be the same, byte for byte.
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
            safe = True
        attempt = 0
        while True:
            is_last = attempt >= self._retries
            request = urllib.request.Request(url, data=data, headers=headers, method=method)
            try:
                with self._opener.open(request, timeout=self._timeout_s) as response:
                    return json.loads(response.read()), response.headers
            except urllib.error.HTTPError as answer:
                error = ApiError(answer.code, _message(answer), answer.headers)
                # The service refuses with 429 before it does anything.
                is_retried = error.status == 429 or (safe and error.status in RETRIED)
                wait_s = _backoff(attempt) if error.retry_after_s is None else error.retry_after_s
                if is_last or not is_retried or wait_s > MAX_WAIT_S:
                    raise error from None
            except (OSError, http.client.HTTPException):
                if is_last or not safe:
                    raise
                wait_s = _backoff(attempt)
            time.sleep(wait_s)
            attempt += 1


def _message(answer: urllib.error.HTTPError) -> str:
    fallback = f"Status {answer.code}."
    try:
        return str(json.loads(answer.read()).get("message", fallback))
    except (OSError, ValueError, AttributeError):
        return fallback


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch("[0-9]{1,12}", text) else None


def _backoff(attempt: int) -> float:
    return min(MAX_WAIT_S, FIRST_WAIT_S * 2.0**attempt) * random.uniform(0.5, 1)
