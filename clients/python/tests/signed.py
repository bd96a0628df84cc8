"""Callbacks for the tests, signed as the service signs them."""

import base64
import hashlib
import hmac
import json
import time
from pathlib import Path

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
FOLDER = Path(__file__).parent.parent
#: The kinds of callbacks, and one of each.
CALLBACKS = json.loads((FOLDER / "callbacks.json").read_text("utf8"))


def signed(body, timestamp=None, secret=SECRET):
    timestamp = str(int(time.time())) if timestamp is None else timestamp
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"msg_1.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
