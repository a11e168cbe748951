"""TLS 1.3 over a socket, with pinned Ed25519 keys on both sides, as docs/PROTOCOL.md specifies."""
import base64
import datetime
import hashlib
import select
import socket
import time

from OpenSSL import SSL, crypto
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

from . import records


class Closed(Exception):
    """The end of the connection, or an error of TLS."""


def pin(public_key):
    """The name of a key in files: SHA-256 of its SubjectPublicKeyInfo (44 bytes for Ed25519)."""
    info = public_key.public_bytes(serialization.Encoding.DER,
                                   serialization.PublicFormat.SubjectPublicKeyInfo)
    digest = base64.b64encode(hashlib.sha256(info).digest()).decode()
    return "sha256:" + digest.rstrip("=")


class Identity:
    """A private key with its self-signed certificate; pem: a key file of `sherd keygen`."""

    def __init__(self, pem=None, days=3650, private=None):
        if private is None:
            private = (serialization.load_pem_private_key(pem, None) if pem
                       else ed25519.Ed25519PrivateKey.generate())
        self.private = private
        self.pin = pin(private.public_key())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "second")])
        start = datetime.datetime(2020, 1, 1)
        digest = None if isinstance(private, ed25519.Ed25519PrivateKey) else hashes.SHA256()
        certificate = (x509.CertificateBuilder().subject_name(name).issuer_name(name)
                       .public_key(private.public_key()).serial_number(1)
                       .not_valid_before(start)
                       .not_valid_after(start + datetime.timedelta(days=days))
                       .sign(private, digest))
        self.certificate = crypto.X509.from_cryptography(certificate)

    def pem(self):
        return self.private.private_bytes(serialization.Encoding.PEM,
                                          serialization.PrivateFormat.PKCS8,
                                          serialization.NoEncryption())


def context(identity, pins, alpn=records.ALPN, versions=(SSL.TLS1_3_VERSION, SSL.TLS1_3_VERSION)):
    """A TLS context that accepts only the keys in pins; None accepts every key."""
    def known(_connection, certificate, _error, depth, _ok):
        return depth == 0 and (pins is None or
                               pin(certificate.to_cryptography().public_key()) in pins)

    tls = SSL.Context(SSL.TLS_METHOD)
    tls.set_min_proto_version(versions[0])
    tls.set_max_proto_version(versions[1])
    tls.use_certificate(identity.certificate)
    tls.use_privatekey(crypto.PKey.from_cryptography_key(identity.private))
    tls.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, known)
    tls.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    if alpn:
        tls.set_alpn_protos([alpn])
        tls.set_alpn_select_callback(
            lambda _c, offered: alpn if alpn in offered else SSL.NO_OVERLAPPING_PROTOCOLS)
    return tls


class Link:
    """
    One connection. Each wait reads from the socket and writes to it, so two sides that both send
    much data cannot deadlock. Not thread-safe.
    """

    def __init__(self, sock, tls, server):
        self.sock = sock
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.tls = SSL.Connection(tls, None)
        (self.tls.set_accept_state if server else self.tls.set_connect_state)()
        self.unsent = bytearray()
        self.read = bytearray()
        self.at = 0
        self.received = self.sent = 0
        self.up = False
        self.over = None  # why no more data can arrive; raised after all earlier data is read

    def _move(self, wait):
        """
        Moves bytes between TLS and socket for at most wait seconds; returns whether any moved.
        """
        if self.over:
            raise Closed(self.over)
        while True:
            try:
                self.unsent += self.tls.bio_read(1 << 20)
            except SSL.WantReadError:
                break
        try:
            r, w, _ = select.select([self.sock], [self.sock] if self.unsent else [], [],
                                    max(0, wait))
            if w:
                sent = self.sock.send(self.unsent[:1 << 20])
                self.sent += sent
                del self.unsent[:sent]
            if r:
                data = self.sock.recv(1 << 20)
                if not data:
                    self.over = "end of the connection"
                    return True
                self.received += len(data)
                self.tls.bio_write(data)
                self._take()
            return bool(r or w)
        except (OSError, ValueError) as error:
            raise Closed(str(error)) from error

    def _take(self):
        while self.up:
            try:
                self.read += self.tls.recv(1 << 20)
            except SSL.WantReadError:
                return
            except SSL.ZeroReturnError:
                self.over = "closed by close_notify"
            except SSL.Error as error:
                self.over = f"TLS: {error}"
            if self.over:
                return

    def handshake(self, seconds=5.0):
        end = time.monotonic() + seconds
        while True:
            try:
                self.tls.do_handshake()
                break
            except SSL.WantReadError:
                pass
            except SSL.Error as error:
                self.flush(0.2)
                raise Closed(f"TLS: {error}") from error
            if not self._move(end - time.monotonic()):
                raise Closed("handshake: timeout")
        self.up = True
        self._take()
        self._move(0)

    def flush(self, seconds=30.0):
        end = time.monotonic() + seconds
        self._move(0)
        while self.unsent and time.monotonic() < end:
            self._move(end - time.monotonic())

    def send(self, data, seconds=30.0):
        view = memoryview(data)
        at = 0
        while at < len(view):
            try:  # one TLS record at a time
                at += self.tls.send(view[at:at + (1 << 18)])
            except SSL.Error as error:
                raise Closed(f"TLS: {error}") from error
            if len(view) - at == 0 or at & 0x3FFFF == 0:
                self.flush(seconds)
        if self.unsent:
            raise Closed("the peer does not read")

    def receive(self, size, end):
        """Returns exactly size bytes; raises TimeoutError at the time end of time.monotonic()."""
        while len(self.read) - self.at < size:
            left = end - time.monotonic()
            if not self._move(left) and left <= 0:
                raise TimeoutError
        data = bytes(memoryview(self.read)[self.at:self.at + size])
        self.at += size
        if self.at > 1 << 20 or self.at == len(self.read):
            del self.read[:self.at]
            self.at = 0
        return data

    def unread(self, wait=0):
        """Whether unread data exists, or arrives within wait seconds."""
        if len(self.read) == self.at:
            self._move(wait)
        return len(self.read) > self.at

    def next_record(self, seconds=60.0):
        """Returns type, flags, job, number, part and body of the next record."""
        end = time.monotonic() + seconds
        magic, kind, flags, job, number, part, size = records.HEADER.unpack(
            self.receive(records.HEADER.size, end))
        if magic != records.MAGIC:
            raise records.Malformed("magic")
        if size > (records.CHUNK if kind <= records.BYE else 65536):
            raise records.Malformed("a body exceeds its maximum length")
        return kind, flags, job, number, part, self.receive(size, end)

    def close(self, reset=False):
        try:
            if reset:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     b"\x01\x00\x00\x00\x00\x00\x00\x00")
            else:
                self.tls.shutdown()
                self.flush(0.2)
        except (SSL.Error, Closed, OSError):
            pass
        self.sock.close()
