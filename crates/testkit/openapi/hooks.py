"""Data that the document allows is not always data that the service can act on: it cannot say which numbers are possible,
which senders are approved, or which messages exist. So valid requests get values that are."""

import datetime
import json
import os

import schemathesis

#: By operation: the values of path parameters that exist.
EXISTING = json.loads(os.environ["SWITCHBOARD_EXISTING"])
NUMBER = "+37120000001"


def tomorrow():
    time = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def number(value):
    """A possible number, in the form of the value."""
    if isinstance(value, list):
        return [number(one) for one in value]
    return int(NUMBER[1:]) if isinstance(value, int) else NUMBER


#: By field: what stands in for a valid value.
USABLE = {
    "to": number,
    "msisdn": number,
    "number": number,
    "from": lambda value: "Switchboard",
    "scheduled": lambda value: tomorrow(),
    "since": lambda value: tomorrow(),
    "until": lambda value: tomorrow(),
    "dlrUrl": lambda value: "http://127.0.0.1:9/",
    "callBackUrl": lambda value: "http://127.0.0.1:9/",
    "notificationUrl": lambda value: "http://127.0.0.1:9/",
    "correctBy": lambda value: "LV",
}


def make_usable(fields):
    for name, usable in USABLE.items():
        if fields.get(name) is not None:
            fields[name] = usable(fields[name])


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if isinstance(case.body, dict):
        make_usable(case.body)
        # They belong together, and to the text.
        for name in ("udh", "coding", "im"):
            case.body.pop(name, None)
    if case.query:
        make_usable(case.query)
    existing = EXISTING.get(case.operation.definition.raw.get("operationId"))
    if existing and case.path_parameters:
        case.path_parameters.update(existing)
