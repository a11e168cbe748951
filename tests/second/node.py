"""
A node of docs/PROTOCOL.md in plain Python. `Session` answers one coordinator as the document says;
a subclass that overrides a step is a node that misbehaves in this step.
"""
import socket
import threading

import numpy as np

from . import blocks, functions, link, records
from .blocks import Refused


class Session:
    """One coordinator: a thread, its blocks and tasks."""

    # Two devices, one of which multiplies packed residues: together as fast as one of minor 1.
    hello = {"minor_min": 2, "minor_max": 2, "features": 0b100000, "software": "second 1",
             "blas_core": "numpy", "backend": "cpu", "threads": 1, "memory": 1 << 30,
             "gflops": 4.0, "residue_gflops": 2.0,
             "devices": [{"does": 15, "gflops": 3.0, "residue_gflops": 1.0, "memory": 0,
                          "cell": 1 << 20, "depth": 1},
                         {"does": 7, "gflops": 1.0, "residue_gflops": 0.0, "memory": 1 << 28,
                          "cell": 0, "depth": 1}]}

    def __init__(self, node, sock):
        self.node, self.sock = node, sock
        self.link = None
        self.blocks = {}
        self.arriving = None
        self.answered = 0

    # The steps of a session, in order.

    def run(self):
        try:
            self.connected()
            self.link = link.Link(self.sock, self.node.tls, True)
            self.link.handshake()
            self.serve()
        except (link.Closed, TimeoutError, OSError):
            pass
        except records.Malformed:
            self.try_send(records.bye(records.EFRAME, "malformed"))
        finally:
            self.blocks.clear()
            if self.link:
                self.link.close()
            self.sock.close()

    def connected(self):
        """Before TLS."""

    def serve(self):
        kind, _flags, _job, _number, _part, body = self.link.next_record(5)
        if kind == records.BYE:
            return
        if kind != records.HELLO:
            raise records.Malformed("no HELLO")
        offer = records.decode(records.HELLO_BODY, body)
        if offer["minor_min"] > 2:
            self.send(records.bye(records.EVERSION, "only minor versions up to 2 are supported"))
            return
        self.welcome(offer)
        while self.step():
            pass

    def welcome(self, offer):
        hello = self.hello
        if offer["minor_max"] < 2:  # it knows nothing of devices
            hello = {k: v for k, v in hello.items() if k != "devices"}
            hello["minor_min"] = hello["minor_max"] = offer["minor_max"]
        self.send(records.record(records.WELCOME, records.encode(records.HELLO_BODY, hello)))

    def step(self):
        """Reads and handles one record; returns False at the end of the session."""
        kind, flags, job, number, part, body = self.link.next_record(30)
        if kind == records.PING:
            self.ping(number)
        elif kind == records.PUT:
            self.put(job, number, part, body)
        elif kind == records.TASK:
            self.task(job, number, part, records.decode(records.TASK_BODY, body))
        elif kind == records.DROP:
            for key in [k for k in self.blocks if k[0] == job and number in (0, k[1])]:
                del self.blocks[key]
        elif kind == records.BYE:
            return False
        elif kind == records.CANCEL:
            self.cancel(job, number, part)
        elif kind != records.PONG and not flags & 1:
            raise records.Malformed("type")
        return True

    def ping(self, number):
        self.send(records.record(records.PONG, number=number))

    def cancel(self, job, number, attempt):
        """Does nothing: tasks are answered on arrival, so none is open."""

    def put(self, job, number, part, body):
        if part == 0:
            description = records.decode(records.DESCRIPTION, body)
            self.arriving = (job, number, description, bytearray(), [1])
        else:
            if not self.arriving or self.arriving[:2] != (job, number) or \
                    self.arriving[4][0] != part:
                raise records.Malformed("part")
            self.arriving[3].extend(body)
            self.arriving[4][0] += 1
        _, _, description, have, _ = self.arriving
        if len(have) >= description["len"]:
            self.arriving = None
            try:
                self.stored(job, number, blocks.parse(description, bytes(have)))
            except Refused as error:
                self.send(records.refuse(job, number, 0, 1, error.code, error.text))

    def stored(self, job, number, block):
        self.blocks[job, number] = block

    def task(self, job, number, attempt, task):
        try:
            self.answer(job, number, attempt, task, self.compute(job, task))
        except Refused as error:
            self.send(records.refuse(job, number, attempt, 2, error.code, error.text))
        self.done(job, task)

    def done(self, job, task):
        """Counts an answered task, and drops the blocks that its flags specify."""
        self.answered += 1
        for bit, side in ((1, "left"), (2, "right")):
            if task.get("flags", 0) & bit:
                self.blocks.pop((job, task[side]), None)

    def compute(self, job, task):
        """Returns the body of the result, or raises Refused."""
        try:
            left = self.blocks[job, task["left"]]
            right = self.blocks[job, task["right"]] if task.get("right") else None
        except KeyError:
            raise Refused(records.EINVAL, "no such block") from None
        if task["op"] in (1, 2):
            return blocks.product(task, left, right)
        if task["op"] not in functions.ONE and task["op"] not in functions.TWO:
            raise Refused(records.EUNSUPPORTED, "operation")
        if task["op"] in functions.TWO and (right is None or left.values.shape != right.values.shape):
            raise Refused(records.ESHAPE, "shapes do not agree")
        return blocks.dress(task["result"], [functions.apply(
            task["op"], left.values.astype(np.float64),
            None if right is None else right.values.astype(np.float64))])

    def answer(self, job, number, attempt, task, body):
        description = dict(task["result"], attempt=attempt)
        for item in records.body_records(records.RESULT, description, body, job, number):
            self.send(item)

    # Used by the steps.

    def send(self, data):
        self.link.send(data)

    def try_send(self, data):
        try:
            self.link.send(data, 1)
        except (link.Closed, AttributeError):
            pass


class Node:
    """Listens on loopback, with a thread for each connection. session: the class that answers."""

    def __init__(self, pins, session=Session, another=None, **tls):
        self.identity = link.Identity()
        self.session = session
        self.sessions = []
        self.coordinators = pins
        self.pins = set(pins)
        self.tls = link.context(another() if another else self.identity, self.pins, **tls)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._listen, daemon=True)
        self.thread.start()

    def line(self, name, domain=None):
        """Returns the line of this node in a node file."""
        return (f"127.0.0.1:{self.port} key={self.identity.pin} name={name} "
                f"domain={domain or name}\n")

    def _listen(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            session = self.session(self, sock)
            self.sessions.append(session)
            threading.Thread(target=session.run, daemon=True).start()

    def close(self):
        # shutdown wakes the thread that is blocked in accept
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        for session in self.sessions:
            try:
                session.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
