"""
Sessions in which coordinators misbehave: a session is brought to a state of a secure sum, of an
all-reduce group or of a round of gradients. After the wrong request, the same work must succeed.
"""
import types

import numpy as np

from . import blocks, link, records, secure
from .allreduce import CONNECT, MEET, REDUCE, STEP
from .coordinate_allreduce import Group
from .coordinate_secure import Sum
from .coordinator import Ended, Refusal, pack, values_of
from .coordinated_sums import near, uploads
from .network import Network, Recipe
from .training import plan

SUMS = """input = 4
layer = dense 3
loss = cross-entropy
data = file
batch = all
weights = he
epochs = 1
rate = 0.5
"""
ALLREDUCE = "input = 5\nlayer = dense 3\nloss = cross-entropy\n"
GRADIENTS = "input = 6\nlayer = dense 4\nlayer = tanh\nlayer = dense 2\nloss = squared\n"
COUNT = 15  # parameters of SUMS
RANDOM = np.random.default_rng(21)
OWN = RANDOM.standard_normal((40, 4)), RANDOM.integers(0, 3, (40, 1)).astype("<u4")


class Ground:
    """A session. ask() sends a task with its operands and returns the code of its refusal, or 0."""

    def __init__(self, worlds, **more):
        """
        worlds: of a node without examples and of a node with its own examples; or one World for
        both.
        """
        self.worlds, self.more = worlds, more
        self.world = worlds[bool(more.get("own"))] if isinstance(worlds, list) else worlds
        self.c = self.world.new()

    def put(self, values, number=None):
        """
        Sends a block, unless values is None; values with less than two dimensions are one row.
        """
        if values is None:
            return 0
        values = np.asarray(values)
        if values.dtype == np.int64 or values.dtype == object:
            values = np.array([int(v) - (1 << 64) if int(v) >> 63 == 1 else int(v)
                               for v in values.reshape(-1)], "<i8").reshape(values.shape)
        self.c.drop(number or 900)
        return self.c.put(values.reshape(1, -1) if values.ndim < 2 else values, 0,
                          number=number or 900)

    def code(self, key, seconds=30):
        """Returns 0, or the code of the refusal."""
        try:
            self.c.wait(key, seconds)
            return 0
        except Refusal as error:
            return error.code

    def ask(self, op, left, right=None, shape=(1, 1), dtype=records.I64):
        one = self.put(left, 901)
        return self.code(self.c.task(op, one, self.put(right, 902), shape, dtype))

    def again(self):
        """Returns a Ground like this one with a new session."""
        return type(self)(self.worlds, **self.more)

    def close(self):
        self.c.close()


class Puppet:
    """A member that the coordinator simulates: secure.py without a connection."""

    def __init__(self):
        s = self.session = secure.Session.__new__(secure.Session)
        s.node = types.SimpleNamespace(identity=link.Identity())
        s.blocks, s.sum, s.data, s.answered = {}, None, OWN, 0
        s.answer = lambda _job, _number, _attempt, task, body: self.bodies.append((task, body))
        s.send = self.refused
        self.job, self.bodies, self.welcome = 1, [], s.hello

    def refused(self, data):
        said = records.decode(records.REFUSE_BODY, data[records.HEADER.size:])
        raise Refusal(said["code"], said["text"], 2)

    def shown(self):
        return secure.raw(self.session.node.identity.private.public_key())

    def drop(self, number=0):
        self.session.blocks.pop((self.job, number), None)

    def put(self, values, groups=0, number=None):
        description, body = pack(values, groups)
        self.session.stored(self.job, number, blocks.parse(description, body))

    def task(self, op, left, right, shape, dtype):
        size = np.dtype(records.DTYPES[dtype]).itemsize * shape[0] * shape[1]
        result = {"dtype": dtype, "rows": shape[0], "cols": shape[1], "len": size}
        self.session.task(self.job, 1, 1, {"op": op, "left": left, "right": right, "result": result})
        return len(self.bodies) - 1

    def wait(self, key):
        task, body = self.bodies[key]
        return values_of(task["result"], body)


class Secure(Ground):
    """A sum of the node and of two puppets; state: the last stage that is completed."""

    STATES = ("new", "joined", "met", "given", "confirmed")

    def __init__(self, world, state="new", own=False):
        super().__init__(world, state=state, own=own)
        self.c.job = int(RANDOM.integers(1, 1 << 62))
        self.start()
        for step in self.STATES[1:self.STATES.index(state) + 1]:
            getattr(self, step)()

    def start(self):
        self.sum = Sum([self.c, Puppet(), Puppet()], SUMS, 3, job=self.c.job)
        if not self.more["own"]:
            for member in self.sum.members:
                for number, values in enumerate(OWN, 7):
                    member.drop(number)
                    member.put(values, 0, number=number)
            whole = self.sum.plan
            self.sum.plan = lambda m: self.dealt(whole(m))
        self.parameters = RANDOM.standard_normal(COUNT)

    @staticmethod
    def dealt(plan_):
        plan_[0, 10:] = 7, 8
        return plan_

    def joined(self):
        assert self.sum.introduce(), self.sum.lost

    def met(self):
        assert self.sum.meet(), self.sum.lost

    def given(self, number=1):
        self.uploads = self.sum.uploads(number, self.parameters, scales=[30], cost_scale=20)
        assert len(self.uploads) == 3, self.sum.lost

    def confirmed(self):
        self.signatures = self.sum.confirmed([0, 1, 2])
        assert len(self.signatures) == 3, self.sum.lost

    def good(self):
        """Whether the session computes the correct sum after a new JOIN."""
        self.start()
        total = self.sum.round(1, self.parameters, scales=[30], cost_scale=20) \
            if self.sum.join() else None
        return near(total, sum(uploads(self.sum, [OWN] * 3, self.parameters, scales=[30],
                                       cost_scale=20)), 1 << 8)


class Ring(Ground):
    """An all-reduce group of the node alone; state: new, met, or stepped (met and made a step)."""

    def __init__(self, world, state="new"):
        super().__init__(world, state=state)
        self.start()
        if state != "new":
            assert self.group.meet(self.first)
        if state == "stepped":
            assert self.step(0)

    def start(self):
        self.group = Group([self.c], [self.world.node], ALLREDUCE, RANDOM.standard_normal((20, 5)),
                             RANDOM.integers(0, 3, (20, 1)).astype("<u4"), job=3, optimiser=2)
        self.c.drop()
        self.group.put(self.c, 1, self.group.alone.blocks_[1])
        self.first = RANDOM.standard_normal(18)

    def step(self, first):
        if self.c.packs == 0:
            self.group.send(self.c, list(range(20)))
        return self.group.step([[(first, 6, 0, 0, 0.0, 0.0, 1.0)]], 0.1, 6.0)

    def question(self, number=None):
        """Returns the valid request of the next STEP."""
        if self.c.packs == 0:
            self.group.send(self.c, list(range(20)))
        before = self.group.number
        self.group.number = before + 1 if number is None else number
        made = self.group.question([(0, 6, 0, 0, 0.0, 0.0, 1.0)], self.c.packs, self.group.rate,
                                    6.0, 0)
        self.group.number = before
        return made[0]

    def meeting(self, at=None, value=0, roster=None, state=None):
        """MEET with a changed number, roster or state."""
        numbers = self.group.plan(1, 0, 2)[0].astype(object)
        if at is not None:
            numbers[at] = value
        self.put(self.first if state is None else state, 2)
        server = self.world.node
        own = f"127.0.0.1:{server.port} key={server.key.pin} name=m\n"
        text = (own if roster is None else roster.replace("OWN\n", own)).encode()
        return self.ask(MEET, numbers, np.frombuffer(text, np.uint8))

    def graded(self, numbers):
        return self.ask(STEP, numbers, None, (1, 3))

    def reduced(self, numbers):
        return self.ask(REDUCE, numbers, None, (1, 6), records.F64)

    def connect(self):
        return self.ask(CONNECT, [1.0], None, (1, 1))

    def good(self):
        self.start()
        done = self.group.meet(self.first) and self.step(0) and self.step(5)
        got, want = self.group.state()
        return done and got == [want]


class Gradients(Ground):
    """A round of one shard."""

    def __init__(self, world):
        super().__init__(world)
        self.recipe = Recipe(GRADIENTS)
        self.c.job = 4
        self.start()

    def start(self):
        self.c.drop()
        self.x, self.t = RANDOM.standard_normal((4, 6)), RANDOM.standard_normal((4, 2))
        self.tiers = [RANDOM.standard_normal(layer.count()) for layer in self.recipe.tiers]
        for number, values in enumerate((np.frombuffer(GRADIENTS.encode(), np.uint8), self.x, self.t), 1):
            self.put(values, number)
        for tier, values in enumerate(self.tiers):
            self.put(values, 10 + tier)

    def numbers(self, at=None, value=0):
        out = plan(self.recipe, 17, [(2, 3, 0, 4, 0, 0, 0.0, 0.0, 1.0)])[0].astype(object)
        if at is not None:
            out[at] = value
        return out

    def keys(self, numbers, block=20, tiers=(0, 1)):
        self.put(numbers, block)
        return [self.c.task(3, block, 10 + tier, (1, layer.count() + (7 if tier == 0 else 0)),
                            dtype=records.I64)
                for tier, layer in enumerate(self.recipe.tiers) if tier in tiers]

    def round(self, numbers):
        """Returns the code of the first refusal of a tier, and cancels the other tiers."""
        keys = self.keys(numbers)
        while all(key in self.c.open for key in keys):
            self.c.take()
        first = next(self.code(key) for key in keys if key in self.c.answers)
        if first:
            self.c.cancel()
        rest = {self.code(key) for key in keys if key in self.c.open or key in self.c.answers}
        return first if rest <= {first, records.EINTERRUPTED} else (first, *rest)

    def good(self):
        self.start()
        got = [self.c.wait(key) for key in self.keys(self.numbers())]
        want, _, _ = Network(self.recipe, 17).gradient(self.x, self.t, self.tiers)
        return all((one[0, :len(g)] == np.rint(g * (4 * 2.0**30)).astype(np.int64)).all()
                   for one, g in zip(got, want))


def code_of(ground, function):
    """Returns the value of function(ground), the code of a refusal, or how the session ended."""
    try:
        return function(ground)
    except Refusal as error:
        return error.code
    except Ended as error:
        return "ended", error.code
