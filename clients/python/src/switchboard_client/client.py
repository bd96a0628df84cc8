"""The REST API of a Switchboard."""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, Unpack, cast
from urllib.parse import quote

from .transport import Transport
from .types import (
    Cancelled,
    Channel,
    Check,
    CheckedCode,
    CodeRequest,
    ConfirmedSender,
    CorrectedNumber,
    Estimate,
    InboundMessage,
    InboxQuery,
    ListedMessage,
    Lookup,
    LookupRequest,
    MessageQuery,
    MessageStatus,
    Network,
    NumberToCorrect,
    Operator,
    OptOut,
    Prefix,
    Rate,
    RemovedOptOut,
    ScheduledMessage,
    Sender,
    SenderRequest,
    SentCode,
    SmsMessage,
    TokenDescription,
    Verification,
    ViberMessage,
)


T = TypeVar("T")


class Sent(NamedTuple):
    #: One for each recipient, in their order.
    ids: list[str]
    #: Over all recipients; each is charged.
    parts: int


class Switchboard:
    """Each operation of the API document is a method. Field names are those of the API."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        header_prefix: str = "X-Service",
        retries: int = 4,
        timeout_s: float = 30,
    ) -> None:
        self._transport = Transport(base_url, token, header_prefix, retries, timeout_s)
        self._amount_header = f"{header_prefix}-Amount-Sent"

    def send_sms(self, *, idempotency_key: str | None = None, **message: Unpack[SmsMessage]) -> Sent:
        """`from` is a keyword of Python, so write `from_`."""
        return self._send("/sms", message, idempotency_key)

    def send_viber(
        self, *, idempotency_key: str | None = None, **message: Unpack[ViberMessage]
    ) -> Sent:
        return self._send("/viber", message, idempotency_key)

    def _send(self, path: str, message: Any, key: str | None) -> Sent:
        ids, headers = self._transport.request("POST", path, body=_fields(message), key=_key(key))
        return Sent(ids, int(headers[self._amount_header]))

    def estimate_sms(self, **message: Unpack[SmsMessage]) -> list[Estimate]:
        return self._post("/sms/cost", message, list[Estimate], safe=True)

    def check_sms(self, **message: Unpack[SmsMessage]) -> Check:
        return self._post("/sms/check", message, Check, safe=True)

    def read_message_status(self, id: str) -> MessageStatus:
        return self._get(f"/sms/status/{_part(id)}", MessageStatus)

    def cancel_message(self, id: str) -> Cancelled:
        return self._request("DELETE", f"/sms/{_part(id)}", Cancelled)

    def list_scheduled_sms(self, limit: int = 1000, offset: int = 0) -> Iterator[ScheduledMessage]:
        return self._by_offset("/sms", {"scheduled": ""}, limit, offset)

    def list_messages(self, **query: Unpack[MessageQuery]) -> Iterator[ListedMessage]:
        return self._by_cursor("/messages", query)

    def list_inbox(self, **query: Unpack[InboxQuery]) -> Iterator[InboundMessage]:
        return self._by_cursor("/sms/inbox", query)

    def read_inbox_message(self, id: str) -> InboundMessage:
        return self._get(f"/sms/inbox/{_part(id)}", InboundMessage)

    def list_opt_outs(self, limit: int | None = None, cursor: str | None = None) -> Iterator[OptOut]:
        return self._by_cursor("/optOuts", {"limit": limit, "cursor": cursor})

    def add_opt_out(self, number: str, sender: str | None = None) -> OptOut:
        return self._post("/optOuts", {"number": number, "sender": sender}, OptOut, safe=True)

    def remove_opt_out(self, number: str, sender: str | None = None) -> RemovedOptOut:
        path = f"/optOuts/{_part(number)}"
        return self._request("DELETE", path, RemovedOptOut, query={"sender": sender})

    def send_code(
        self, *, idempotency_key: str | None = None, **request: Unpack[CodeRequest]
    ) -> SentCode:
        return self._post("/verify", request, SentCode, key=_key(idempotency_key))

    def check_code(self, id: int, code: str) -> CheckedCode:
        return self._post(f"/verify/{_part(id)}/check", {"code": code}, CheckedCode)

    def read_verification(self, id: int) -> Verification:
        return self._get(f"/verify/{_part(id)}", Verification)

    def register_sender(self, **sender: Unpack[SenderRequest]) -> int:
        """Returns the ID of the sender."""
        return self._post("/senderId", sender, int)

    def confirm_sender(self, id: int, code: str) -> ConfirmedSender:
        return self._post(f"/senderId/confirm/{_part(id)}", {"code": code}, ConfirmedSender)

    def read_sender(self, id: int) -> Sender:
        return self._get(f"/senderId/{_part(id)}", Sender)

    def list_senders(self, limit: int = 1000, offset: int = 0) -> Iterator[Sender]:
        return self._by_offset("/senderId", {}, limit, offset)

    def look_up(
        self, msisdn: str, callback_url: str | None = None, *, idempotency_key: str | None = None
    ) -> int:
        """Returns the ID of the lookup. Without `callback_url`, read the result with `read_lookup`."""
        body: LookupRequest = {"msisdn": msisdn}
        query = {"callback": "none"}
        if callback_url is not None:
            body["callBackUrl"] = callback_url
            query = {}
        key = _key(idempotency_key)
        return self._request("POST", "/hlr", list[int], query=query, body=body, key=key)[0]

    def read_lookup(self, id: int) -> Lookup:
        return self._get(f"/hlr/{_part(id)}", Lookup)

    def list_rates(self, channel: Channel | None = None) -> list[Rate]:
        return self._get("/rates", list[Rate], {"channel": channel})

    def read_operator(self, id: int) -> Operator:
        return self._get(f"/operators/{_part(id)}", Operator)

    def list_networks(self, country: str) -> Iterator[Network]:
        page = 1
        while True:
            networks = self._get(f"/mccmnc/{_part(country)}", list[Network], {"Page": page})
            yield from networks
            if len(networks) < 100:
                return
            page += 1

    def list_prefixes(self, country: str) -> list[Prefix]:
        return self._get(f"/prefixes/{_part(country)}", list[Prefix])

    def correct_numbers(self, numbers: list[NumberToCorrect]) -> list[CorrectedNumber]:
        path = "/numberCorrection"
        return self._request("POST", path, list[CorrectedNumber], body=numbers, safe=True)

    def read_token(self, limits: bool = False) -> TokenDescription:
        return self._get("/token", TokenDescription, {"limits": ""} if limits else None)

    def _get(self, path: str, kind: type[T], query: dict[str, Any] | None = None) -> T:
        return self._request("GET", path, kind, query=query, safe=True)

    def _post(
        self,
        path: str,
        fields: Mapping[str, Any],
        kind: type[T],
        *,
        key: str | None = None,
        safe: bool = False,
    ) -> T:
        return self._request("POST", path, kind, body=_fields(fields), key=key, safe=safe)

    def _request(self, method: str, path: str, kind: type[T], **options: Any) -> T:
        """`kind` is for the type checker; the answer is not checked."""
        return cast(T, self._transport.request(method, path, **options)[0])

    def _by_cursor(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        query = _fields(query)
        while True:
            page, headers = self._transport.request("GET", path, query=query, safe=True)
            yield from page
            query["cursor"] = headers.get("X-Next-Cursor")
            if query["cursor"] is None:
                return

    def _by_offset(
        self, path: str, query: dict[str, Any], limit: int, offset: int
    ) -> Iterator[Any]:
        while True:
            page = self._get(path, list[Any], {**query, "limit": limit, "offset": offset})
            yield from page
            if len(page) < limit:
                return
            offset += limit


def _part(value: object) -> str:
    return quote(str(value), safe="")


def _key(given: str | None) -> str:
    return given or str(uuid.uuid4())


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """`from_` stands for `from`, which is a keyword of Python."""
    return {name.removesuffix("_"): value for name, value in given.items()}
