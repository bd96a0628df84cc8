"""Every method of the client, as a program uses it. Only type-checked."""

from typing import assert_type
from wsgiref.simple_server import make_server

from switchboard_client import (
    ApiError,
    Callback,
    SignatureError,
    Switchboard,
    asgi_handler,
    read_callback,
    verify_signature,
    wsgi_handler,
)

switchboard = Switchboard(
    "https://switchboard.example.com", "sb_1", header_prefix="X-Service", retries=4, timeout_s=30
)


def messages() -> None:
    sent = switchboard.send_sms(
        to=["+37120000001"], from_="Acme", message="Hi", coding=0, testMode="1", idempotency_key="1"
    )
    assert_type(sent.ids, list[str])
    assert_type(sent.parts, int)
    action = {"url": "https://example.com", "title": "Open"}
    switchboard.send_viber(
        to="+37120000001",
        from_="Acme",
        message="Hi",
        im={"action": {"url": action["url"], "title": action["title"]}},
    )
    [estimate] = switchboard.estimate_sms(to="+37120000001", from_="Acme", message="Hi")
    assert_type(estimate["totalPrice"], str)
    refusal = switchboard.check_sms(to="+37120000001", from_="Acme", message="Hi")["refusal"]
    assert_type(refusal["error"] if refusal else None, int | None)
    assert_type(switchboard.read_message_status(sent.ids[0])["parts"], int)
    assert_type(switchboard.cancel_message("1")["id"], str)
    for scheduled in switchboard.list_scheduled_sms(limit=10, offset=0):
        assert_type(scheduled["scheduled"], str)
    for listed in switchboard.list_messages(state="failed", channel="sms", limit=10):
        assert_type(listed["from"], str | None)
    for inbound in switchboard.list_inbox(from_="+37120000001", since="2030-01-31T00:00:00Z"):
        assert_type(inbound["received"], str)
    assert_type(switchboard.read_inbox_message("1")["incomplete"], bool)
    for rule in switchboard.list_opt_outs(limit=10):
        assert_type(rule["number"], str)
    assert_type(switchboard.add_opt_out("+37120000001", "Acme")["since"], str)
    assert_type(switchboard.remove_opt_out("+37120000001")["sender"], str | None)


def verification() -> None:
    code = switchboard.send_code(
        to="+37120000001", from_="Acme", length=6, message="{code}", idempotency_key="sign-in-17"
    )
    assert_type(code["id"], int)
    assert_type(switchboard.check_code(code["id"], "123456")["id"], int)
    assert_type(switchboard.read_verification(code["id"])["expires"], str)
    sender = switchboard.register_sender(
        type="AlphaNumeric", name="Acme", category="Brand", categoryDescription="Our brand"
    )
    assert_type(sender, int)
    assert_type(switchboard.confirm_sender(sender, "12345")["id"], int)
    assert_type(switchboard.read_sender(sender)["reason"], str | None)
    for one in switchboard.list_senders(limit=10, offset=0):
        assert_type(one["name"], str)


def numbers() -> None:
    lookup = switchboard.look_up("+37120000001", "https://example.com", idempotency_key="1")
    result = switchboard.read_lookup(lookup)["result"]
    assert_type(result["error"] if result else None, int | None)
    assert_type(switchboard.list_rates(channel="viber")[0]["Rate"], str)
    assert_type(switchboard.read_operator(1)["mnc"], list[str])
    for network in switchboard.list_networks("LV"):
        assert_type(network["MCC"], int)
    assert_type(switchboard.list_prefixes("LV")[0]["prefix"], int)
    corrected = switchboard.correct_numbers([{"Number": "29111111", "CountryIso": "LV"}])
    assert_type(corrected[0]["NumberE164"], str | None)
    assert_type(switchboard.read_token(limits=True)["balance"], str)


def receive(callback: Callback) -> None:
    print(callback.kind == "report", callback.id, callback.data["id"])


async def receive_async(callback: Callback) -> None:
    receive(callback)


def handlers() -> None:
    make_server("", 8000, wsgi_handler("whsec_", receive)).serve_forever()
    asgi_handler("whsec_", receive_async)
    try:
        verify_signature("whsec_", {"webhook-id": "msg_1"}, b"{}", tolerance_s=60, now=0)
        receive(read_callback("whsec_", {}, b"{}"))
    except SignatureError as error:
        print(error)
    except ApiError as error:
        assert_type(error.status, int)
        assert_type(error.error_code, int | None)
        assert_type(error.retry_after_s, int | None)
        assert_type(error.required_permission, str | None)
        assert_type(error.request_id, str | None)
