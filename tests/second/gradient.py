"""A node that computes gradients (operation 3): docs/PROTOCOL.md, "Gradients"."""
import time

import numpy as np

from . import node, records
from .blocks import Refused
from .network import Network, Recipe


class Plan:
    def __init__(self, numbers):
        if len(numbers) < 8 or numbers[0] != 1 or not 1 <= numbers[4] <= 64:
            raise Refused(records.EFORMAT, "plan")
        _, self.recipe, self.bits, self.room, tiers, self.parameters, shards, _ = \
            map(int, numbers[:8])
        if len(numbers) != 8 + tiers + 10 * shards:
            raise Refused(records.EFORMAT, "length of the plan")
        self.scales = [int(s) for s in numbers[8:8 + tiers]]
        rest = np.array(numbers[8 + tiers:], "<i8").reshape(shards, 10)
        self.shards = [([int(n) for n in row[:7]], row[7:].copy().view("<f8")) for row in rest]


class Session(node.Session):
    """Waits for the requests of all tiers of a round; answers from the top tier down."""

    hello = {**node.Session.hello, "features": 0b100001}

    def __init__(self, *given):
        super().__init__(*given)
        self.rounds = {}

    def block(self, job, number):
        try:
            return self.blocks[job, number].values
        except KeyError:
            raise Refused(records.EINVAL, "no such block") from None

    def task(self, job, number, attempt, task):
        if task["op"] != 3:
            return super().task(job, number, attempt, task)
        asked = self.rounds.setdefault((job, task["left"]), {"began": time.monotonic()})
        try:
            plan = Plan(self.block(job, task["left"]))
        except Refused as error:
            del self.rounds[job, task["left"]]
            return self.send(records.refuse(job, number, attempt, 2, error.code, error.text))
        asked[task["right"] - plan.parameters] = number, attempt, task
        if len(asked) == len(plan.scales) + 1:
            del self.rounds[job, task["left"]]
            self.grade(job, plan, asked)
        return None

    def cancel(self, job, number, attempt):
        for key, asked in list(self.rounds.items()):
            for tier, one in list(asked.items()):
                if tier == "began" or key[0] != job or (number and one[:2] != (number, attempt)):
                    continue
                self.send(records.refuse(job, *one[:2], 2, records.EINTERRUPTED, "cancelled"))
                del asked[tier]
            if len(asked) == 1:
                del self.rounds[key]

    def grade(self, job, plan, asked):
        tiers = range(len(plan.scales))
        try:
            bodies = self.answers(job, plan, asked)
        except Refused as error:
            bodies = [error] * len(tiers)
        for tier in reversed(tiers):
            number, attempt, task = asked[tier]
            if isinstance(bodies[tier], Refused):
                self.send(records.refuse(job, number, attempt, 2, bodies[tier].code,
                                         bodies[tier].text))
            else:
                self.answer(job, number, attempt, task, bodies[tier])
            self.answered += 1
            for bit, side in ((1, "left"), (2, "right")):
                if task.get("flags", 0) & bit:
                    self.blocks.pop((job, task[side]), None)
        for (inputs, targets, _, _, drop, *_), _ in plan.shards:
            if drop:
                self.blocks.pop((job, inputs), None)
                self.blocks.pop((job, targets), None)

    def answers(self, job, plan, asked):
        text = bytes(self.block(job, plan.recipe)).decode()
        network = Network(Recipe(text), plan.bits)
        parameters = [self.block(job, plan.parameters + t).astype(np.float64)
                      for t in range(len(plan.scales))]
        if [len(p) for p in parameters] != [layer.count() for layer in network.recipe.tiers]:
            raise Refused(records.ESHAPE, "parameters of a different network")
        sums = [np.zeros(len(p), np.int64 if plan.bits else np.float64) for p in parameters]
        figures = []
        for (inputs, targets, first, rows, _, steps, each), (rate, l2, weight) in plan.shards:
            inputs, targets = (self.blocks[job, n] for n in (inputs, targets))
            x = inputs.values.reshape(inputs.shapes[0])[first:first + rows]
            t = targets.values.reshape(targets.shapes[0])[first:first + rows]
            gradients, cost, hits = network.shard(x, t, parameters, steps, each, rate, l2, weight)
            figures += [np.float64(cost).tobytes(), np.int64(hits).tobytes()]
            if not np.isfinite(cost):
                raise Refused(records.ERANGE, "a cost that is not finite")
            for total, g, scale in zip(sums, gradients, plan.scales):
                count = 1 if steps else rows
                if plan.bits == 0:
                    total += g * count
                    continue
                numbers = np.rint(g * (count * 2.0**scale))
                if (np.abs(numbers) > 2.0**plan.room).any():
                    raise Refused(records.EBUSY, "an entry is out of range")
                total += numbers.astype(np.int64)
        now = int((time.monotonic() - asked["began"]) * 1e6)
        figures.append(np.array([0, 0, now, now, now], "<i8").tobytes())
        return [s.tobytes() + (b"".join(figures) if tier == 0 else b"")
                for tier, s in enumerate(sums)]
