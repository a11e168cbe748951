"""A coordinator of docs/PROTOCOL.md in plain Python: one session with one node."""
import os
import re
import socket
import subprocess
import time

import numpy as np
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import blocks, harness, link, records


class Refusal(Exception):
    """A REFUSE of a block or a task."""

    def __init__(self, code, text, what):
        super().__init__(code, text)
        self.code, self.text, self.what = code, text, what


class Ended(Exception):
    """A BYE of the node, with its code, or the end of the connection (ECLOSED)."""

    def __init__(self, code, text):
        super().__init__(code, text)
        self.code, self.text = code, text


class Coordinator:
    """Connects and sends HELLO; keeps all answers by (job, task, attempt)."""

    offer = {"minor_min": 0, "minor_max": 2, "features": 0, "software": "second 1",
             "blas_core": "", "backend": "", "threads": 0, "memory": 0, "gflops": 0.0}

    def __init__(self, port, identity, pins, job=1, greet=True, **tls):
        self.job = job
        self.blocks = self.tasks = 0
        self.answers = {}
        self.pongs = []
        self.refused_blocks = {}
        self.open = {}
        self.beside = ()  # other sessions of this thread, whose PINGs are answered during a wait
        sock = socket.create_connection(("127.0.0.1", port), 5)
        self.link = link.Link(sock, link.context(identity, pins, **tls), False)
        self.welcome = None
        try:
            self.link.handshake()
            if greet:
                self.hello()
        except link.Closed as error:
            sock.close()
            raise Ended(records.ECLOSED, str(error)) from error

    def hello(self):
        self.send(records.record(records.HELLO, records.encode(records.HELLO_BODY, self.offer)))
        kind, *_, body = self.link.next_record(5)
        if kind == records.BYE:
            said = records.decode(records.BYE_BODY, body)
            raise Ended(said["code"], said.get("text", ""))
        assert kind == records.WELCOME, kind
        self.welcome = records.decode(records.HELLO_BODY, body)

    def shown(self):
        """The 32 bytes of the Ed25519 key that the node used in TLS."""
        key = self.link.tls.get_peer_certificate().to_cryptography().public_key()
        return key.public_bytes(Encoding.Raw, PublicFormat.Raw)

    def send(self, data):
        try:
            self.link.send(data)
        except link.Closed as error:
            self._last_words(error)

    def _last_words(self, error):
        """Reads the records before the end of the connection: the node may have sent a reason."""
        try:
            while True:
                self.take(0)
        except (link.Closed, TimeoutError):
            raise Ended(records.ECLOSED, str(error)) from error

    def put(self, values, groups=None, dtype=None, csr=False, number=None):
        """
        Sends a block and returns its number. values: one matrix, or with groups a list of matrices;
        with dtype RESIDUES, each matrix is a list of one matrix for each prime.
        """
        if number is None:
            self.blocks += 1
            number = self.blocks
        description, body = pack(values, groups, dtype, csr)
        for item in records.body_records(records.PUT, description, body, self.job, number):
            self.send(item)
        return number

    def task(self, op, left, right=0, shape=(1, 1), dtype=records.F64, primes=(), flags=0,
             windows=None, attempt=1, number=None):
        """Sends a task; returns its key among the answers."""
        if number is None:
            self.tasks += 1
            number = self.tasks
        each = (3 * len(primes) if dtype == records.RESIDUES
                else len(primes) if dtype == records.BYTES
                else np.dtype(records.DTYPES.get(dtype, "u1")).itemsize)
        result = {"origin": 2, "dtype": dtype, "encoding": 0,
                  "primes": len(primes) if dtype in (records.RESIDUES, records.BYTES) else 0,
                  "groups": 0,
                  "rows": shape[0], "cols": shape[1], "len": shape[0] * shape[1] * each}
        body = {"op": op, "flags": flags, "left": left, "right": right, "primes": list(primes),
                "result": result}
        if windows:
            body["windows"] = windows
        key = (self.job, number, attempt)
        self.open[key] = result
        self.send(records.record(records.TASK, records.encode(records.TASK_BODY, body), *key))
        return key

    def take(self, seconds=30.0):
        """Reads one record and keeps its contents; returns its type."""
        kind, flags, job, number, part, body = self.link.next_record(seconds)
        if kind == records.RESULT:
            if part == 0:
                description = records.decode(records.DESCRIPTION, body)
                self.arriving = [(job, number, description["attempt"]), description, bytearray()]
            else:
                self.arriving[2].extend(body)
            key, description, have = self.arriving
            if len(have) == description["len"]:
                want = dict(self.open.pop(key), attempt=key[2])
                assert description == want, (description, want)
                self.answers[key] = values_of(description, bytes(have))
        elif kind == records.REFUSE:
            said = records.decode(records.REFUSE_BODY, body)
            error = Refusal(said["code"], said.get("text", ""), said["what"])
            if said["what"] == 1:
                self.refused_blocks[job, number] = error
            else:
                self.open.pop((job, number, part))
                self.answers[job, number, part] = error
        elif kind == records.PING:
            self.send(records.record(records.PONG, number=number))
        elif kind == records.PONG:
            self.pongs.append(number)
        elif kind == records.BYE:
            said = records.decode(records.BYE_BODY, body)
            raise Ended(said["code"], said.get("text", ""))
        elif not flags & 1:
            raise records.Malformed(f"type {kind}")
        return kind

    def wait(self, key, seconds=30.0):
        """
        Returns the answer of a task: an array, or for residues one for each prime; or raises
        Refusal.
        """
        end = time.monotonic() + seconds
        try:
            while key not in self.answers:
                if self.beside and not self.link.unread(0.5):
                    for other in self.beside:
                        other.attend()
                    if time.monotonic() < end:
                        continue
                self.take(end - time.monotonic())
        except link.Closed as error:
            raise Ended(records.ECLOSED, str(error)) from error
        answer = self.answers.pop(key)
        if isinstance(answer, Refusal):
            raise answer
        return answer

    def attend(self):
        """
        Reads the records that have arrived; the end of the session is reported at its next use.
        """
        try:
            while self.link.unread():
                self.take()
        except (Ended, link.Closed):
            pass

    def ended(self, seconds=30.0):
        """Reads until the node ends the session; returns the code of its BYE, or ECLOSED."""
        end = time.monotonic() + seconds
        try:
            while True:
                self.take(end - time.monotonic())
        except Ended as error:
            return error.code
        except link.Closed:
            return records.ECLOSED

    def ping(self, number):
        self.send(records.record(records.PING, number=number))

    def cancel(self, number=0, attempt=0, job=None):
        self.send(records.record(records.CANCEL, job=job or self.job, number=number, part=attempt))

    def drop(self, number=0, job=None):
        self.send(records.record(records.DROP, job=job or self.job, number=number))

    def close(self):
        try:
            self.link.send(records.bye(0, ""), 1)
        except link.Closed:
            pass
        self.link.close()


def pack(values, groups=None, dtype=None, csr=False):
    """Returns the description and the body of a block."""
    if dtype in blocks.BYTES:
        table, primes, groups = [values[0].shape], len(values), 0
        body = blocks.lay_out(values, dtype)
    elif dtype == records.RESIDUES:
        matrices = values if groups else [values]
        # values: for each group a list of one matrix for each prime
        table = [m[0].shape for m in matrices]
        primes = len(matrices[0])
        body = b"".join(blocks.pack_residues(m[q]) for q in range(primes) for m in matrices)
    else:
        matrices = values if groups else [values]
        table, primes = [m.shape for m in matrices], 0
        kind = np.dtype(records.DTYPES[dtype]) if dtype else matrices[0].dtype
        dtype = dtype or next(k for k, v in records.DTYPES.items() if np.dtype(v) == kind)
        body = b"".join(m.astype(kind).tobytes() for m in matrices)
        if csr:
            body = pack_sparse(matrices, kind)
    head = b"" if groups == 0 else b"".join(np.array(t, "<u4").tobytes() for t in table)
    return {"origin": 1, "dtype": dtype, "encoding": int(csr), "primes": primes,
            "groups": 0 if groups == 0 else len(table), "rows": sum(r for r, _ in table),
            "cols": max(c for _, c in table), "len": len(head) + len(body)}, head + body


def pack_sparse(matrices, kind):
    width = max(m.shape[1] for m in matrices)
    index = "u1" if width <= 255 else "<u2" if width <= 65535 else "<u4"
    counts = np.concatenate([(m != 0).sum(1) for m in matrices])
    columns = np.concatenate([np.nonzero(m)[1] for m in matrices])
    values = np.concatenate([m[m != 0] for m in matrices])
    return (counts.astype(index).tobytes() + columns.astype(index).tobytes() +
            values.astype(kind).tobytes())


def values_of(description, body):
    shape = description["rows"], description["cols"]
    if description["dtype"] == records.RESIDUES:
        flat = blocks.unpack_residues(body).reshape(description["primes"], -1)
        return [one.reshape(shape) for one in flat]
    if description["dtype"] == records.BYTES:
        return list(np.frombuffer(body, np.uint8).reshape(description["primes"], *shape))
    return np.frombuffer(body, records.DTYPES[description["dtype"]]).reshape(shape)


class Server:
    """A process `sherd node` on loopback with an allow-list of these identities, until stop()."""

    def __init__(self, name, allowed, *options):
        self.name = name
        self.key = harness.identity(f"{name}.key")
        with open(f"{name}.allow", "w", encoding="ascii") as file:
            file.writelines(f"* key={who.pin} name=c{i}\n" for i, who in enumerate(allowed))
        self.log = f"{name}.err"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [harness.SHERD, "node", "--listen", "127.0.0.1:0", "--key", f"{name}.key",
                 "--allow", f"{name}.allow", "--selftest", "quick", *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        harness.started.append(self)
        line = self.process.stdout.readline()
        found = re.match(r"127\.0\.0\.1:(\d+) ", line)
        assert found, line + open(self.log, encoding="utf-8").read()
        self.port = int(found[1])
        self.pins = {self.key.pin}

    def status(self, name):
        """Returns a number of /proc/PID/status, for example VmHWM, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024

    def cpu(self):
        """Seconds of processor time."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def lives(self):
        return self.process.poll() is None

    def stop(self):
        """Ends the process by SIGTERM; returns its exit code."""
        if self.lives():
            self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None
