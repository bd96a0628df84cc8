"""Checks signed requests with the libraries of the providers: twilio, vonage-jwt and telnyx.

    judge.py < REQUESTS

REQUESTS is a list of requests as JSON: each has the provider, the key, the URL, the headers that have the signature, and
the body. For each it prints, as a list, whether the library accepts it and, if the library can sign, its signature.
"""

import json
import sys
from urllib.parse import parse_qsl

import nacl.exceptions
import telnyx
from telnyx.webhook import Webhook, WebhookSignature
from twilio.request_validator import RequestValidator
from vonage_jwt import verify_signature
from vonage_jwt.errors import VonageVerifyJwtError


def twilio(request):
    fields = dict(parse_qsl(request["body"], keep_blank_values=True))
    validator = RequestValidator(request["key"])
    given = request["headers"]["X-Twilio-Signature"]
    return {
        "accepts": validator.validate(request["url"], fields, given),
        "signature": validator.compute_signature(request["url"], fields),
    }


def vonage(request):
    token = request["headers"]["Authorization"].removeprefix("Bearer ")
    try:
        return {"accepts": verify_signature(token, request["key"])}
    except VonageVerifyJwtError:
        return {"accepts": False}


def telnyx_signature(request):
    telnyx.public_key = request["key"]
    headers = request["headers"]
    given, time = headers["Telnyx-Signature-Ed25519"], headers["Telnyx-Timestamp"]
    try:
        WebhookSignature.verify(request["body"], given, time, Webhook.DEFAULT_TOLERANCE)
    except (nacl.exceptions.BadSignatureError, telnyx.error.SignatureVerificationError):
        return {"accepts": False}
    return {"accepts": True}


judges = {"twilio": twilio, "vonage": vonage, "telnyx": telnyx_signature}
print(json.dumps([judges[request["provider"]](request) for request in json.load(sys.stdin)]))
