"""What a user's program looks like to mypy --strict; `make check-python` checks it and runs it."""

from __future__ import annotations

import asyncio
import os
import tempfile

import numpy as np
import numpy.typing as npt

import sherd


async def later(c: sherd.Cluster, a: sherd.Kept, b: npt.NDArray[np.float64]) -> float:
    """Awaits a product."""
    return float((await c.submit(a, b)).sum())


def main() -> None:
    """The example of README."""
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((300, 200)), rng.standard_normal((200, 100))
    with sherd.Cluster(7, scheme="share", spare=1) as c:
        plan: sherd.Plan = c.plan(x, w)
        print(plan)
        y: npt.NDArray[np.float64] = c.multiply(x, w, check=True)
        a = c.keep(x)
        assert np.allclose(a @ w, y, atol=1e-2) and (a.T @ y).shape == (200, 100)
        report = c.report
        assert report is not None and report.check_error < 1e-9
        print(report)
        print(asyncio.run(later(c, a, w)))
        key = sherd.keygen("me.key")
        r = c.multiply(x, w, certificate="C.json", key="me.key")
        model = sherd.train(
            "spiral", cluster=c, settings={"steps": 10, "report_every": "5 steps"}, on_epoch=print
        )
        print(model.predict(rng.random((3, 2)), cluster=c).shape)
    found: sherd.Check = sherd.verify("C.json", x, w, r, signer=key)
    print(found.equal, sherd.Certificate("C.json").info.scheme)
    meta = sherd.metadata.build({"z": (300, 200, 100)}, nodes=7)
    print(meta["z"].exposures.shape, meta.save("m.npz"))
    try:
        with sherd.Cluster(2, scheme="share", colluding=5):
            pass
    except sherd.TooFewNodes as e:
        print(e.message, e.hint, e.exit_code)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir("/")
