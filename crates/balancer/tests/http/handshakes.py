"""Handshake checks in the manner of tlsfuzzer, with tlslite-ng: odd, broken and hostile TLS clients against one listener.

usage: handshakes.py HOST PORT. Prints `ok NAME` or `not ok NAME: WHY` for each check; exits 1 if one failed. After each check a
correct client must be answered.
"""
import errno
import os
import socket
import struct
import sys

from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.constants import ContentType
from tlslite.errors import TLSError
from tlslite.messages import Alert, ApplicationData, ChangeCipherSpec, KeyUpdate

HOST, PORT = sys.argv[1], int(sys.argv[2])
LIMIT = 15
NAME = b"web.example"


def connect():
    connection = socket.create_connection((HOST, PORT), timeout=LIMIT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def settings(least, most):
    chosen = HandshakeSettings()
    chosen.minVersion, chosen.maxVersion = least, most
    return chosen


def handshake(least=(3, 3), most=(3, 4)):
    tls = TLSConnection(connect())
    tls.handshakeClientCert(settings=settings(least, most), serverName=NAME.decode())
    return tls


def request(tls):
    tls.send(b"GET / HTTP/1.1\r\nHost: web.example\r\nConnection: close\r\n\r\n")
    return bytes(tls.read(max=64, min=1))


def extension(kind, body):
    return struct.pack("!HH", kind, len(body)) + body


def vector(size, body):
    return len(body).to_bytes(size, "big") + body


GROUPS = extension(10, vector(2, b"\x00\x17\x00\x1d"))
SIGNATURES = extension(13, vector(2, b"\x04\x03\x08\x04\x08\x05\x04\x01\x05\x01"))
SNI = extension(0, vector(2, b"\x00" + vector(2, NAME)))
VERSIONS_12 = extension(43, vector(1, b"\x03\x03"))


def hello(version=b"\x03\x03", session=b"", ciphers=b"\xc0\x2f\xc0\x2b", compression=b"\x00", extensions=None):
    """Returns a ClientHello as a handshake message."""
    extensions = SNI + GROUPS + SIGNATURES if extensions is None else extensions
    body = version + os.urandom(32) + vector(1, session) + vector(2, ciphers) + vector(1, compression) + vector(2, extensions)
    return b"\x01" + vector(3, body)


def record(kind, body, version=b"\x03\x01"):
    return bytes([kind]) + version + vector(2, body)


def refused(data, half_close=True):
    """Sends bytes and expects an alert or the end of the connection, and no ServerHello."""
    connection = connect()
    try:
        connection.sendall(data)
        if half_close:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    except (ConnectionResetError, BrokenPipeError):
        return
    except OSError as error:
        # The connection was reset before it could be shut down.
        if error.errno != errno.ENOTCONN:
            raise
        return
    finally:
        connection.close()
    if answer[:1] not in (b"", b"\x15"):
        raise AssertionError(f"answered with {answer[:16].hex()}")


def accepted(data):
    """Sends bytes and expects a ServerHello."""
    connection = connect()
    connection.sendall(data)
    answer = connection.recv(16)
    connection.close()
    if answer[:1] != b"\x16":
        raise AssertionError(f"answered with {answer.hex() or 'nothing'}")


def hello_in_single_bytes():
    message = hello()
    accepted(b"".join(record(22, message[at:at + 1]) for at in range(len(message))))


def a_flood_of_messages(make, count=20_000):
    """Sends messages of the protocol without end; the server may end the connection, and must not hang."""
    def check():
        tls = handshake((3, 4), (3, 4))
        try:
            for _ in range(count):
                for _ in tls._sendMsg(make()):
                    pass
            request(tls)
        except (TLSError, OSError):
            pass
        finally:
            tls.sock.close()
    return check


def data_before_finished():
    connection = connect()
    connection.sendall(record(22, hello()) + record(23, b"GET / HTTP/1.1\r\n\r\n", b"\x03\x03"))
    connection.shutdown(socket.SHUT_WR)
    answer = b""
    try:
        while piece := connection.recv(65536):
            answer += piece
    except ConnectionResetError:
        pass
    if b"HTTP/" in answer:
        raise AssertionError("answered before the handshake was finished")


def renegotiation():
    tls = handshake((3, 3), (3, 3))
    try:
        tls.handshakeClientCert(settings=settings((3, 3), (3, 3)), serverName=NAME.decode())
    except (TLSError, OSError, ValueError):
        return
    raise AssertionError("a second handshake was accepted")


CHECKS = {
    "TLS 1.2 is answered": lambda: request(handshake((3, 3), (3, 3))),
    "TLS 1.3 is answered": lambda: request(handshake((3, 4), (3, 4))),
    "a hello in records of one byte is read": hello_in_single_bytes,
    "a hello of TLS 1.2 is answered": lambda: accepted(record(22, hello(extensions=SNI + GROUPS + SIGNATURES + VERSIONS_12))),
    "empty records of handshake are refused": lambda: refused(record(22, b"") * 100),
    "an unknown record type is refused": lambda: refused(record(99, b"x" * 50)),
    "a record larger than 2^14 + 256 is refused": lambda: refused(b"\x16\x03\x01\xff\xff" + b"x" * 65535),
    "a hello of SSL 2 is refused": lambda: refused(b"\x80\x2e\x01\x03\x03\x00\x15\x00\x00\x00\x10" + b"\x00" * 64),
    "SSL 3 is refused": lambda: refused(record(22, hello(version=b"\x03\x00"), b"\x03\x00")),
    "TLS 1.0 is refused": lambda: refused(record(22, hello(version=b"\x03\x01"))),
    "TLS 1.1 is refused": lambda: refused(record(22, hello(version=b"\x03\x02"))),
    "a session id longer than 32 bytes is refused": lambda: refused(record(22, hello(session=b"s" * 33))),
    "no cipher is refused": lambda: refused(record(22, hello(ciphers=b""))),
    "an odd length of ciphers is refused": lambda: refused(record(22, hello(ciphers=b"\xc0\x2f\xc0"))),
    "ciphers without forward secrecy are refused": lambda: refused(record(22, hello(ciphers=b"\x00\x9c\x00\x2f\x00\x35"))),
    "export, RC4 and NULL ciphers are refused": lambda: refused(record(22, hello(ciphers=b"\x00\x03\x00\x05\x00\x01\x00\x3b"))),
    "compression without null is refused": lambda: refused(record(22, hello(compression=b"\x01"))),
    "an extension twice is refused": lambda: refused(record(22, hello(extensions=SNI + SNI + GROUPS + SIGNATURES))),
    "an extension that ends behind the hello is refused": lambda: refused(record(22, hello(extensions=SNI + b"\x00\x0a\x00\xff\x00"))),
    "a length of the hello that lies is refused": lambda: refused(record(22, b"\x01\x00\x00\x05" + hello()[4:])),
    "a hello of 16 MiB is refused": lambda: refused(record(22, b"\x01\xff\xff\xff" + b"x" * 16000) * 8),
    "a ServerHello of the client is refused": lambda: refused(record(22, b"\x02" + hello()[1:])),
    "Finished instead of a hello is refused": lambda: refused(record(22, b"\x14\x00\x00\x0c" + b"f" * 12)),
    "application data instead of a hello is refused": lambda: refused(record(23, b"GET / HTTP/1.1\r\n\r\n")),
    "plain HTTP is refused": lambda: refused(b"GET / HTTP/1.1\r\nHost: web.example\r\n\r\n"),
    "a fatal alert ends the connection": lambda: refused(record(21, b"\x02\x28")),
    "warnings without end are refused": lambda: refused(record(21, b"\x01\x5a") * 5000),
    "ChangeCipherSpec before the hello is refused": lambda: refused(record(20, b"\x01") * 5000),
    "data before Finished is not answered": data_before_finished,
    "renegotiation is refused": renegotiation,
    "KeyUpdate without end is survived": a_flood_of_messages(lambda: KeyUpdate().create(1)),
    "ChangeCipherSpec after the handshake is survived": a_flood_of_messages(lambda: ChangeCipherSpec().create(), 2000),
    "empty application data without end is survived": a_flood_of_messages(lambda: ApplicationData().create(bytearray())),
    "warnings after the handshake are survived": a_flood_of_messages(lambda: Alert().create(90, 1), 2000),
}

failed = 0
for name, check in CHECKS.items():
    try:
        check()
        if not request(handshake()).startswith(b"HTTP/1.1 200"):
            raise AssertionError("a correct client is not answered afterwards")
        print("ok", name)
    except Exception as error:  # noqa: BLE001 - whatever went wrong is a failed check
        failed += 1
        print(f"not ok {name}: {type(error).__name__}: {error}")
print(f"{len(CHECKS) - failed} passed, {failed} failed")
sys.exit(1 if failed else 0)
