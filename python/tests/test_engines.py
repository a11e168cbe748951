"""Clusters on the workers of a real Dask and of a real Ray."""

import numpy as np
import pytest

import sherd.dask

RNG = np.random.default_rng(9)
A = RNG.integers(-9, 10, (40, 30))
B = RNG.integers(-9, 10, (30, 20))


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("dask.distributed")
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
        ) as workers,
        distributed.Client(workers) as c,
    ):
        yield c


def nodes_of_dask(client):
    def count():
        from sherd import _engine

        return len(_engine._started)

    return sum(client.run(count).values())


def test_a_cluster_on_the_workers_of_dask(client):
    with sherd.dask.cluster(client, scheme="plain", exact=True) as c:
        assert len(c) == 3 and nodes_of_dask(client) == 3
        assert {n.domain for n in c.nodes} == {"dask"}
        np.testing.assert_array_equal(c.multiply(A, B, check=True), A @ B)
        m = sherd.train("spiral", cluster=c, by="gradients", settings={"steps": 5})
        assert m.report.nodes == 3
    assert nodes_of_dask(client) == 0
    c.close()


def test_workers_of_one_dask_are_one_adversary(client):
    with pytest.raises(sherd.TooFewNodes):
        sherd.dask.cluster(client, scheme="share")
    assert nodes_of_dask(client) == 0


def test_domains_of_dask_are_told(client, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    separate = {"scheme": "share", "same_host_domains": True}
    for domains in ("worker", lambda address: "d" + address.rpartition(":")[2]):
        with sherd.dask.cluster(client, domains=domains, **separate) as c:
            np.testing.assert_array_equal(c.multiply(A, B), A @ B)
    workers = list(client.scheduler_info()["workers"])[:1]
    sherd.prepare(B, tmp_path / "B.masks", rows=40, bits=8, bits_b=8)
    with sherd.dask.cluster(
        client, workers=workers, scheme="blind", masks=tmp_path / "B.masks"
    ) as c:
        np.testing.assert_array_equal(c.multiply(A, B), A @ B)
    with pytest.raises(ValueError, match="domains is 'magic'"):
        sherd.dask.cluster(client, domains="magic")


def test_a_cluster_on_the_nodes_of_ray(tmp_path):
    ray = pytest.importorskip("ray")
    from sherd import ray as engine

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir="/tmp/ray-sherd")
    try:
        with engine.cluster(nodes_each=2, scheme="plain", exact=True) as c:
            assert len(c) == 2 and {n.domain for n in c.nodes} == {"ray"}
            np.testing.assert_array_equal(c.multiply(A, B, check=True), A @ B)
        with pytest.raises(sherd.TooFewNodes):
            engine.cluster(nodes_each=3, scheme="share")
        with engine.cluster(
            nodes_each=3, domains="worker", scheme="share", same_host_domains=True
        ) as c:
            np.testing.assert_array_equal(c.multiply(A, B), A @ B)
    finally:
        ray.shutdown()
