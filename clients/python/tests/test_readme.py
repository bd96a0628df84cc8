"""The handlers of README.md, as they are written there."""

import contextlib
import io
import json
import os
import re
import sys
import types
import unittest
from unittest import mock

import django
from django.conf import settings
from django.test import Client
from signed import CALLBACKS, FOLDER, SECRET, signed
from starlette.testclient import TestClient
from werkzeug.test import Client as WsgiClient

os.environ["CALLBACK_SECRET"] = SECRET
settings.configure(
    ROOT_URLCONF="callbacks_of_readme",
    ALLOWED_HOSTS=["testserver"],
    MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"],
    SECRET_KEY="secret",
)
django.setup()
PAGE = (FOLDER / "README.md").read_text("utf8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
KINDS_AND_IDS = [f"{kind} {data['id']}" for kind, data in CALLBACKS.items()]


def load(word):
    """Runs the code that contains the word, and returns its names."""
    [code] = [code for code in BLOCKS if word in code]
    module = types.ModuleType("callbacks_of_readme")
    exec(code, module.__dict__)
    return module


class Readme(unittest.TestCase):
    def check(self, post, expected):
        """`post` sends a body with headers, and returns the status and the text of the answer."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            for data in CALLBACKS.values():
                body = json.dumps(data).encode()
                self.assertEqual(post(body, signed(body)), (200, "OK"))
            self.assertEqual(post(b"{}", {})[0], 401)
        self.assertEqual(printed.getvalue().splitlines(), expected)

    def check_wsgi(self, application, expected):
        def post(body, headers):
            answer = WsgiClient(application).post("/callbacks", data=body, headers=headers)
            return answer.status_code, answer.text

        self.check(post, expected)

    def test_the_handler_alone(self):
        with mock.patch("wsgiref.simple_server.make_server") as make_server:
            load("make_server")
        report, inbound = CALLBACKS["report"], CALLBACKS["inbound"]
        expected = [
            f"{report['id']} {report['status']}",
            f"{inbound['from']} {inbound['message']}",
        ]
        self.check_wsgi(make_server.call_args.args[2], expected)

    def test_flask(self):
        self.check_wsgi(load("Flask(").app, KINDS_AND_IDS)

    def test_fastapi(self):
        client = TestClient(load("FastAPI(").app, follow_redirects=False)

        def post(body, headers):
            answer = client.post("/callbacks/", content=body, headers=headers)
            return answer.status_code, answer.text

        self.check(post, KINDS_AND_IDS)
        self.assertEqual(client.post("/callbacks").status_code, 307)

    def test_django(self):
        module = load("urlpatterns")
        sys.modules[module.__name__] = module
        client = Client(enforce_csrf_checks=True)

        def post(body, headers):
            answer = client.post("/callbacks", body, "application/json", headers=headers)
            return answer.status_code, answer.content.decode()

        self.check(post, KINDS_AND_IDS)


if __name__ == "__main__":
    unittest.main()
