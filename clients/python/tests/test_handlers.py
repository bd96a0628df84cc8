"""The verification of signatures, and the handlers."""

import asyncio
import io
import json
import time
import unittest
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

from signed import CALLBACKS, SECRET, signed
from switchboard_client import (
    SignatureError,
    asgi_handler,
    read_callback,
    verify_signature,
    wsgi_handler,
)

BODY = json.dumps(CALLBACKS["report"]).encode()
TOO_LARGE = b"x" * (2 * 1024 * 1024)


def call_wsgi(receive, body, headers):
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
    environ |= {
        "REQUEST_METHOD": "POST",
        "QUERY_STRING": "",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
    }
    setup_testing_defaults(environ)
    started = []

    def start_response(status, headers, error=None):
        started.append(int(status[:3]))

    result = validator(wsgi_handler(SECRET, receive))(environ, start_response)
    text = b"".join(result).decode()
    result.close()
    return started[0], text


def call_asgi(receive, body, headers):
    async def receive_async(callback):
        receive(callback)

    names = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": names}
    half = len(body) // 2
    messages = [
        {"type": "http.request", "body": body[:half], "more_body": True},
        {"type": "http.request", "body": body[half:]},
    ]
    return asyncio.run(answer_of(asgi_handler(SECRET, receive_async), scope, messages))


async def answer_of(handler, scope, messages):
    sent = []

    async def read():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    await handler(scope, read, send)
    return (sent[0]["status"], sent[1]["body"].decode()) if sent else None


class Signatures(unittest.TestCase):
    def test_invalid_signatures_are_refused(self):
        now = int(time.time())
        cases = {
            "too old": signed(BODY, str(now - 400)),
            "in the future": signed(BODY, str(now + 400)),
            "too many digits": signed(BODY, "9" * 5000),
            "other digits": signed(BODY, "٣"),
            "no number": signed(BODY, "soon"),
            "negative": signed(BODY, str(-now)),
            "another secret": signed(BODY, secret="whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"),
            "another body": signed(b"{}"),
            "no signature": {**signed(BODY), "webhook-signature": "v1,é"},
            "no header": {},
        }
        for name, headers in cases.items():
            with self.subTest(name), self.assertRaises(SignatureError):
                verify_signature(SECRET, headers, BODY)
        verify_signature(SECRET, signed(BODY), BODY)

    def test_every_kind_of_callback_is_recognised(self):
        for kind, data in CALLBACKS.items():
            body = json.dumps(data).encode()
            self.assertEqual(read_callback(SECRET, signed(body), body), (kind, "msg_1", data))


class Handlers(unittest.TestCase):
    def check(self, body, headers, status, text=None, receive=None):
        for call in (call_wsgi, call_asgi):
            with self.subTest(call.__name__):
                answer = call(receive or self.fail, body, headers)
                self.assertEqual(answer[0], status)
                if text is not None:
                    self.assertEqual(answer[1], text)

    def test_valid_callbacks_are_received(self):
        received = []
        for data in CALLBACKS.values():
            body = json.dumps(data).encode()
            self.check(body, signed(body), 200, "OK", received.append)
        kinds = [callback.kind for callback in received]
        self.assertEqual(kinds, [kind for kind in CALLBACKS for _ in range(2)])

    def test_forged_callbacks_get_401(self):
        for headers in ({}, signed(b"{}"), signed(BODY, "9" * 5000)):
            self.check(BODY, headers, 401)

    def test_a_body_that_is_too_large_gets_413(self):
        self.check(TOO_LARGE, signed(TOO_LARGE), 413, "The body is too large.")

    def test_a_failure_gets_500(self):
        def fail(callback):
            raise OSError("The database is down.")

        with self.assertLogs("switchboard_client.callbacks", "ERROR"):
            self.check(BODY, signed(BODY), 500, receive=fail)

    def test_a_lost_connection_gets_no_answer(self):
        scope = {"type": "http", "headers": []}
        handler = asgi_handler(SECRET, self.fail)
        answer = asyncio.run(answer_of(handler, scope, [{"type": "http.disconnect"}]))
        self.assertIsNone(answer)


if __name__ == "__main__":
    unittest.main()
