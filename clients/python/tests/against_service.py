"""Uses the client as a program would, and writes what it saw.

Prints the port of its receiver, reads {"url", "token", "secret", "callbackUrl", "to", "from"} from standard input, and
writes one JSON object.
"""

import contextlib
import http.client
import json
import queue
import sys
import threading
import urllib.error
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from wsgiref.simple_server import WSGIRequestHandler, make_server

from switchboard_client import ApiError, Switchboard, wsgi_handler

DEADLINE_S = 120


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class Failing(BaseHTTPRequestHandler):
    """Drops the first attempt of each request, refuses the second, and accepts the third."""

    #: The idempotency keys of the attempts, for each path.
    keys = defaultdict(list)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        keys = self.keys[self.path.partition("?")[0]]
        keys.append(self.headers["Idempotency-Key"])
        if len(keys) == 1:
            self.close_connection = True
            return None
        return self.answer(503, b"{}") if len(keys) == 2 else self.answer(200, b'["1"]')

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("X-Service-Amount-Sent", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def forge(url, headers):
    """The status of a callback that the service did not send."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=b"{}", headers=headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def refusal(call):
    try:
        call()
    except ApiError as error:
        return {"status": error.status, "errorCode": error.error_code}
    return None


def main():
    received = queue.Queue()
    secret = []

    def application(environ, start_response):
        return wsgi_handler(secret[0], received.put)(environ, start_response)

    print(serve(make_server("127.0.0.1", 0, application, handler_class=Quiet)), flush=True)
    task = json.loads(sys.stdin.readline())
    secret.append(task["secret"])
    switchboard = Switchboard(task["url"], task["token"])

    message = {"to": task["to"], "from_": task["from"], "message": "Grüße"}
    seen = {"check": switchboard.check_sms(**message)}
    message["dlrUrl"] = task["callbackUrl"]
    for name in ["sent", "repeated"]:
        seen[name] = switchboard.send_sms(idempotency_key="order-17", **message)._asdict()
    seen["lookupId"] = switchboard.look_up(task["to"], task["callbackUrl"])
    while not {"report", "inbound", "lookup"} <= seen.keys():
        callback = received.get(timeout=DEADLINE_S)
        seen[callback.kind] = callback.data
    seen["status"] = switchboard.read_message_status(seen["sent"]["ids"][0])
    seen["inbox"] = [one["id"] for one in switchboard.list_inbox(from_=task["to"], limit=1)]

    timestamp = {"webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
    seen["forged"] = [forge(task["callbackUrl"], headers) for headers in ({}, timestamp)]
    seen["refused"] = refusal(lambda: switchboard.send_sms(to="12", from_="Acme", message="Hi"))
    for number in ("+37120000001", "+37120000002"):
        switchboard.send_sms(to=number, from_="Acme", message="Hi", testMode="1")
    seen["listed"] = [one["id"] for one in switchboard.list_messages(channel="sms", limit=2)]
    seen["networks"] = sum(1 for _ in switchboard.list_networks("US"))

    port = serve(HTTPServer(("127.0.0.1", 0), Failing))
    failing = Switchboard(f"http://127.0.0.1:{port}", "token")
    failing.send_sms(to="+37120000001", from_="Acme", message="Hi")
    failing.send_viber(to="+37120000001", from_="Acme", message="Hi")
    failing.send_code(to="+37120000001")
    failing.look_up("+37120000001")
    # A wrong code would count as a second try.
    with contextlib.suppress(OSError, http.client.HTTPException):
        failing.check_code(1, "1234")
    seen["attempts"] = Failing.keys
    print(json.dumps(seen))


main()
