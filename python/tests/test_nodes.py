"""Nodes in this process, and keys in memory."""

import pickle

import numpy as np
import pytest

import sherd

A = np.arange(12).reshape(4, 3)


def test_a_product_over_nodes_of_this_process():
    key = sherd.Key()
    nodes = [
        sherd.Node(allow=[key.fingerprint], name=f"n{i}", domain=f"site-{i}") for i in range(3)
    ]
    assert all(f"name=n{i} domain=site-{i}" in n.line for i, n in enumerate(nodes))
    lines = [n.line for n in nodes]
    with sherd.Cluster(lines, key=key, scheme="share", same_host_domains=True) as c:
        np.testing.assert_array_equal(c.multiply(A, A.T), A @ A.T)
        assert [n.name for n in c.nodes] == ["n0", "n1", "n2"] and not c.nodes[0].pid
    for n in nodes:
        assert n.report.bytes_in > 0 and n.report.sessions == 1
        n.end()
        n.end()


def test_a_node_refuses_other_coordinators():
    refused = (sherd.TooFewNodes, sherd.PeerError)
    with sherd.Node(allow=[sherd.Key().fingerprint]) as node, pytest.raises(refused):
        sherd.Cluster([node.line], key=sherd.Key(), scheme="plain", connect_timeout=5)


def test_a_key_is_saved_and_loaded(tmp_path):
    key = sherd.Key()
    key.save(tmp_path / "me.key")
    assert sherd.Key(tmp_path / "me.key").fingerprint == key.fingerprint
    assert key.fingerprint == sherd.fingerprint(tmp_path / "me.key") and key.fingerprint in repr(
        key
    )
    with pytest.raises(sherd.CannotOpen):
        key.save(tmp_path / "me.key")
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(key)
    (tmp_path / "me.key").chmod(0o644)
    with pytest.raises(sherd.BadKey):
        sherd.Key(tmp_path / "me.key")


def test_a_key_of_a_file_is_that_of_a_node(tmp_path):
    mine = sherd.keygen(tmp_path / "node.key")
    with sherd.Node(allow=[sherd.Key().fingerprint], key=tmp_path / "node.key") as node:
        assert mine in node.line and repr(node) == f"<Node: {node.line}>"


def test_wrong_arguments_of_a_node():
    fingerprint = sherd.Key().fingerprint
    for options, error in (
        ({"allow": []}, sherd.Error),
        ({"allow": ["sha256:short"]}, sherd.Malformed),
        ({"allow": [fingerprint], "listen": "nowhere"}, sherd.Error),
        ({"allow": [fingerprint], "domain": "two words"}, sherd.Error),
    ):
        with pytest.raises(error):
            sherd.Node(**options)
    with sherd.Node(allow=[fingerprint]) as node:
        address = node.line.split()[0]
        with pytest.raises(sherd.AddressInUse):
            sherd.Node(allow=[fingerprint], listen=address)
