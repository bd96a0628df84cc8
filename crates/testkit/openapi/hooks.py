"""Fits requests that the document allows to the rules that a JSON schema cannot express.

A number must have a known calling code and a possible length, a message must be scheduled within a year, and so on. Without
this, nearly all such requests would be refused with 400, and Schemathesis would see little of the API. Requests that break
the document are sent as they are.
"""

import datetime
import itertools
import re

import schemathesis

NUMBER = 37120000001
OPTED_OUT = 37120000002
# A number gets few one-time codes, and so do numbers that begin alike.
CODES = (37120000000 + 100_003 * count % 10_000_000 for count in itertools.count(1))
# Few wrong tokens are accepted from one address, and Schemathesis tries one with each operation.
ADDRESSES = itertools.count(1)
SENDER = "Acme"  # approved by the test
PLAIN_SENDER = re.compile(r"[+]?[0-9]+|[A-Za-z0-9 .]+")
COUNTRY = "LV"
SMS = {"sendSms", "checkSms", "estimateSms"}


@schemathesis.deserializer("plain/text")
def read_id(context, response):
    return int(response.text)


@schemathesis.hook
def before_call(context, case, kwargs):
    address = next(ADDRESSES)
    case.headers["X-Forwarded-For"] = f"10.{address >> 16}.{address >> 8 & 255}.{address & 255}"
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    operation = context.operation.definition.raw.get("operationId")
    if operation == "removeOptOut":
        # Only this one can be on the list.
        case.path_parameters, case.query = {"number": f"+{OPTED_OUT}"}, {}
    elif isinstance(case.body, dict):
        case.body = fitted(operation, case.body)
    if operation == "lookUp" and case.body.get("callBackUrl") is None:
        case.query = {**(case.query or {}), "callback": "none"}


def fitted(operation, body):
    body = dict(body)
    number = {"addOptOut": OPTED_OUT, "sendCode": next(CODES), "registerSender": next(CODES)}.get(operation, NUMBER)
    fields = ["to", "msisdn", "number"] + ["name"] * (body.get("type") == "MSISDN")
    for field in fields:
        if field in body:
            body[field] = known_number(body[field], number)
    # Other originators must be approved: always for Viber, and for SMS if they have special characters.
    if operation == "sendViber" or not is_plain(body.get("from")):
        body["from"] = SENDER
    if body.get("scheduled") is not None:
        body["scheduled"] = ahead(body["scheduled"])
    # Any two letters are allowed, but not all are a country.
    if body.get("correctBy") is not None:
        body["correctBy"] = COUNTRY
    if operation in SMS and (body.get("coding") is not None or body.get("udh") is not None):
        # One part, with characters of every coding.
        body.update(coding=body.get("coding") or 0, udh="%05%00%03%2A%02%01", message="Hello")
    if isinstance(body.get("im"), dict):
        # The service would fetch the image.
        body["im"] = {**body["im"], "image": None}
    if operation == "addOptOut":
        body["sender"] = None
    return body


def known_number(value, number):
    if isinstance(value, list):
        return [known_number(one, number) for one in value]
    return f"+{number}" if isinstance(value, str) else number


def is_plain(sender):
    return not isinstance(sender, str) or PLAIN_SENDER.fullmatch(sender)


def ahead(time):
    """Moves a time to a day within a year; its form and its offset stay."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return (now + datetime.timedelta(days=2)).date().isoformat() + time[10:]
