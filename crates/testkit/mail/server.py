"""A mail server for tests: TLS from the first octet or by STARTTLS, and authentication.

    server.py MODE CERTIFICATE KEY USER PASSWORD

MODE is "smtps" or "starttls". The first line of its output is the port; each further line is a received mail as JSON.
"""

import asyncio
import json
import ssl
import sys
from email import message_from_bytes
from email.policy import default

from aiosmtpd.smtp import SMTP, AuthResult


class Mails:
    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.content, policy=default)
        received = {
            "from": str(mail["from"]),
            "to": envelope.rcpt_tos,
            "subject": str(mail["subject"]),
            "text": mail.get_content(),
            "tls": session.ssl is not None or mode == "smtps",
            "user": session.auth_data and session.auth_data.login.decode(),
        }
        print(json.dumps(received), flush=True)
        return "250 taken"


def check(server, session, envelope, mechanism, given):
    is_right = given.login == user.encode() and given.password == password.encode()
    return AuthResult(success=is_right, handled=False, auth_data=given)


mode, certificate, key, user, password = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
settings = {"authenticator": check, "auth_required": True}
if mode == "starttls":
    settings |= {"tls_context": context, "require_starttls": True}
else:
    settings |= {"auth_require_tls": False}



async def serve():
    loop = asyncio.get_running_loop()
    make = lambda: SMTP(Mails(), hostname="localhost", loop=loop, **settings)
    tls = context if mode == "smtps" else None
    server = await loop.create_server(make, "127.0.0.1", 0, ssl=tls)
    print(server.sockets[0].getsockname()[1], flush=True)
    # It ends with the test, which holds the other end.
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


asyncio.run(serve())
