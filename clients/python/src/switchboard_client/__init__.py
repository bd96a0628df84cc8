"""A client for Switchboard: send messages, verify numbers, receive reports and replies."""

from .callbacks import (
    Callback,
    SignatureError,
    asgi_handler,
    read_callback,
    verify_signature,
    wsgi_handler,
)
from .client import Sent, Switchboard
from .transport import ApiError

__all__ = [
    "ApiError",
    "Callback",
    "Sent",
    "SignatureError",
    "Switchboard",
    "asgi_handler",
    "read_callback",
    "verify_signature",
    "wsgi_handler",
]
