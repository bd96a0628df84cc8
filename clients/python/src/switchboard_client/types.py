"""The bodies of requests and answers. Amounts of money are decimals as text; times without a zone are UTC."""

from typing import Literal, NotRequired, Required, TypedDict

Priority = Literal["high", "normal", "low"]
Channel = Literal["sms", "viber", "hlr"]
Coding = Literal[0, 1, 2]
State = Literal["scheduled", "queued", "sent", "delivered", "failed", "expired", "cancelled"]
SenderKind = Literal["AlphaNumeric", "MSISDN"]
SenderStatus = Literal["pending", "awaiting_confirmation", "approved", "rejected", "revoked"]
SenderCategory = Literal["Company", "Product", "Brand", "Shortcode", "Landline", "Other"]


class SmsMessage(TypedDict, total=False):
    to: Required[str | list[str]]
    from_: Required[str]
    message: Required[str]
    dlrUrl: str
    priority: Priority
    scheduled: str
    udh: str
    coding: Coding
    testMode: Literal["1", "2"]
    expireIn: int
    correctBy: str


class Action(TypedDict):
    url: str
    title: str


class Image(TypedDict):
    url: str


class Interactive(TypedDict, total=False):
    action: Action
    image: Image


class ViberMessage(TypedDict, total=False):
    to: Required[str | list[str]]
    from_: Required[str]
    message: Required[str]
    dlrUrl: str
    priority: Priority
    scheduled: str
    testMode: Literal["1", "2"]
    correctBy: str
    im: Interactive


class Estimate(TypedDict):
    to: str
    parts: int
    coding: Coding
    countryISO: str | None
    mccmnc: str | None
    pricePerPart: str
    totalPrice: str
    currency: str


class Refusal(TypedDict):
    status: int
    message: str
    error: int | None


class Check(TypedDict):
    accepted: bool
    refusal: Refusal | None
    parts: int
    totalPrice: str
    currency: str
    recipients: list[Estimate]


class MessageStatus(TypedDict):
    id: str
    status: int | None
    error: int | None
    dlrDate: str | None
    state: State
    parts: int
    mcc: str | None
    mnc: str | None


class Cancelled(TypedDict):
    id: str
    status: Literal["cancelled"]


ScheduledMessage = TypedDict(
    "ScheduledMessage",
    {
        "id": str,
        "scheduled": str,
        "from": str,
        "to": str,
        "message": str,
        "dlrUrl": str | None,
    },
)

ListedMessage = TypedDict(
    "ListedMessage",
    {
        "id": str,
        "channel": Channel,
        "from": str | None,
        "to": str | None,
        "accepted": str,
        "scheduled": str | None,
        "state": State,
        "status": int | None,
        "error": int | None,
        "parts": int,
        "price": str,
    },
)

InboundMessage = TypedDict(
    "InboundMessage",
    {
        "id": str,
        "from": str,
        "to": str,
        "message": str,
        "received": str,
        "parts": int,
        "coding": Coding,
        "udh": str | None,
        "mcc": str | None,
        "mnc": str | None,
        "keyword": str | None,
        "inReplyTo": str | None,
        "incomplete": bool,
    },
)


class InboxQuery(TypedDict, total=False):
    from_: str
    to: str
    since: str
    until: str
    #: The size of a page.
    limit: int
    cursor: str


class MessageQuery(InboxQuery, total=False):
    state: State
    channel: Channel


class OptOut(TypedDict):
    number: str
    sender: str | None
    since: str
    via: Literal["keyword", "api", "dashboard", "import"]


class RemovedOptOut(TypedDict):
    number: str
    sender: str | None


class CodeRequest(TypedDict, total=False):
    to: Required[str]
    from_: str
    length: int
    expireIn: int
    #: With `{code}` where the code belongs.
    message: str
    correctBy: str


class SentCode(TypedDict):
    id: int
    to: str
    #: RFC 3339.
    expires: str


class Verification(SentCode):
    status: Literal["pending", "approved", "expired", "failed"]


class CheckedCode(TypedDict):
    id: int
    status: Literal["approved"]


class SenderRequest(TypedDict, total=False):
    name: Required[str]
    type: Required[SenderKind]
    #: Required for a name, as `categoryDescription` is.
    category: SenderCategory
    categoryDescription: str
    notificationUrl: str


class Sender(TypedDict):
    id: int
    name: str
    type: SenderKind
    status: SenderStatus
    reason: str | None
    category: SenderCategory | None
    categoryDescription: str | None
    notificationUrl: str | None
    created: str


class ConfirmedSender(TypedDict):
    id: int
    status: SenderStatus


class LookupRequest(TypedDict):
    msisdn: str
    callBackUrl: NotRequired[str]


class OriginalOperator(TypedDict):
    operatorId: int
    operator: str
    country: str | None


class LookupResult(TypedDict):
    id: str
    error: int
    imsi: NotRequired[int]
    country: NotRequired[str]
    operatorId: NotRequired[int]
    mcc: NotRequired[str]
    mnc: NotRequired[str]
    ported: NotRequired[list[OriginalOperator]]


class Lookup(TypedDict):
    id: int
    state: Literal["pending", "done"]
    result: LookupResult | None


class Rate(TypedDict):
    CountryName: str
    CountryCode: str
    Operator: str
    Network: str
    MCC: int | None
    MNC: str | None
    Rate: str


class Operator(TypedDict):
    name: str
    country: str | None
    mcc: int | None
    mnc: list[str]


class Network(TypedDict):
    country: str | None
    MCC: int
    MNC: str
    operatorId: int


class Prefix(TypedDict):
    prefix: int
    country: str | None
    operatorId: int


class NumberToCorrect(TypedDict):
    Number: str
    CountryIso: NotRequired[str]


class CorrectedNumber(TypedDict):
    Error: str | None
    Number: str | None
    NumberType: Literal["mobile", "landline", "unknown"]
    CountryIso: str | None
    Mobile: bool
    NumberE164: str | None


class AccountLimits(TypedDict):
    creditLimit: str
    dailyCap: str | None
    leftToday: str | None
    clientDailyCap: str | None
    clientLeftToday: str | None
    perRecipientHour: int | None
    countries: list[str]
    approvedSendersOnly: bool
    requestsPerSecond: int | None


class TokenDescription(TypedDict):
    account: str
    name: str
    permissions: list[str]
    ips: list[str]
    expires: str | None
    currency: str
    balance: str
    limits: NotRequired[AccountLimits]


class DeliveryReport(TypedDict):
    id: str
    #: 1 delivered, 2 not delivered, 3 seen (Viber), 16 expired after it was sent.
    status: int
    error: int
    mcc: NotRequired[str]
    mnc: NotRequired[str]


class SenderNotification(TypedDict):
    id: int
    name: str
    type: SenderKind
    status: SenderStatus
    previousStatus: SenderStatus
    reason: str | None
    timestamp: str
