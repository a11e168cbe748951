"""The life of a cluster: opening, closing, interrupts, threads, processes, faults."""

import asyncio
import concurrent.futures
import copy
import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from conftest import MISBEHAVING

import sherd
from sherd._worker import Worker

RNG = np.random.default_rng(4)
A = RNG.integers(-9, 10, (40, 30))
B = RNG.integers(-9, 10, (30, 20))


def is_usable(c, **options):
    np.testing.assert_array_equal(c.multiply(A, B, **options), A @ B)


# ---- opening and closing ---------------------------------------------------------------------


def test_a_cluster_describes_its_nodes(shared):
    assert len(shared) == 5 and shared.simulated
    assert [n.name for n in shared.nodes] == [f"node-{i}" for i in range(1, 6)]
    assert all(n.state == "up" and n.pid > 0 for n in shared.nodes)
    assert repr(shared) == "<Cluster: 5 nodes, simulated on one host, share>"


@pytest.mark.parametrize("nodes", [0, -1, 1001, 2**32])
def test_the_number_of_local_nodes_is_bounded(nodes):
    with pytest.raises(sherd.InvalidArgument, match="not a number from 1 to 1000"):
        sherd.Cluster(nodes)


def test_local_nodes_compute_on_devices_of_their_own(monkeypatch):
    monkeypatch.setenv("POCL_DEVICES", "pthread pthread")
    with sherd.Cluster(1, scheme="plain", exact=True, backend="opencl", devices=2) as c:
        (node,) = c.nodes
        assert node.backend == "opencl" and node.devices == 2
        is_usable(c)
    with pytest.raises(sherd.InvalidArgument, match="need 4, and backend opencl has 2"):
        sherd.Cluster(2, backend="opencl", devices=2)
    with pytest.raises(sherd.InvalidArgument, match="there is no device 7"):
        sherd.Cluster(1, backend="opencl", device=7)
    with pytest.raises(sherd.InvalidArgument, match="those of local nodes, and none are started"):
        sherd.Cluster(["127.0.0.1:1"], devices=1)


def test_a_closed_cluster_says_so():
    c = sherd.Cluster(2, scheme="plain")
    kept = c.keep(A)
    with c:
        is_usable(c)
        kept @ B  # whose report is read later
    c.close()
    assert c.closed and repr(c) == "<Cluster: closed>" and c.report.tasks > 0
    for call in (
        lambda: c.multiply(A, B),
        lambda: c.submit(A, B),
        lambda: c.nodes,
        lambda: kept @ B,
        lambda: c.keep(A),
        c.__enter__,
    ):
        with pytest.raises(sherd.ClosedError, match="the cluster is closed"):
            call()
    kept.free()


def test_a_call_that_is_queued_after_the_last_one_is_refused():
    # Another thread closes the cluster between the check that it is open and the call.
    worker = Worker("cluster")
    worker.stop()
    with pytest.raises(sherd.ClosedError, match="the cluster is closed"):
        worker.submit(lambda: 1)


def test_the_report_of_a_kept_product_outlives_its_operand():
    with sherd.Cluster(2, scheme="plain") as c:
        c.keep(A) @ B
    assert c.report.nodes == 2 and c.report.tasks > 0


def test_local_nodes_end_with_a_cluster_that_is_not_closed():
    c = sherd.Cluster(2, scheme="plain")
    pids = [n.pid for n in c.nodes]
    del c
    gc.collect()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_program_ends_without_closing():
    code = "import sherd, numpy as np\nc = sherd.Cluster(2, scheme='plain')\n"
    code += "k = c.keep(np.eye(3))\nf = c.submit(np.eye(300), np.eye(300))\nprint('end')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


def test_too_few_nodes_are_found_before_any_is_started():
    with pytest.raises(sherd.TooFewNodes) as e:
        sherd.Cluster(2, scheme="share", colluding=3)
    assert e.value.exit_code == 7 and e.value.hint


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        ((), {}, sherd.InvalidArgument),
        ((3,), {"running": True}, sherd.InvalidArgument),
        ((0,), {}, sherd.InvalidArgument),
        ((2.5,), {}, TypeError),
        (("/nowhere/nodes.txt",), {}, sherd.InvalidArgument),  # no key
        ((3,), {"scheme": "secret"}, sherd.InvalidArgument),
        ((3,), {"bits": 60}, sherd.InvalidArgument),
        ((3,), {"bits": "wide"}, TypeError),
        ((3,), {"colluding": -1}, sherd.InvalidArgument),
        ((3,), {"encoding": "zip"}, sherd.InvalidArgument),
        ((3,), {"code": "morse"}, sherd.InvalidArgument),
        ((3,), {"seed": b"short"}, sherd.InvalidArgument),
        ((3,), {"timeout": -1}, sherd.InvalidArgument),
        ((3,), {"program": "/nowhere/sherd"}, sherd.Error),
    ],
)
def test_wrong_arguments_are_errors(arguments, options, error):
    with pytest.raises(error), sherd.Cluster(*arguments, **options) as c:
        c.multiply(A, B)


def test_an_unknown_option_is_named_with_the_nearest_one(plain):
    with pytest.raises(TypeError, match="no option 'schema': did you mean 'scheme'"):
        plain.multiply(A, B, schema="plain")


def test_nodes_of_a_list_are_reached(tmp_path, monkeypatch):
    """`sherd cluster up` and a node file; a key that nodes do not allow is refused."""
    command = os.environ.get("SHERD") or os.path.join(os.path.dirname(sherd.library), "sherd")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "sherd"
    run = [command, "cluster"]
    subprocess.run([*run, "up", "-n", "3"], check=True, capture_output=True)
    try:
        for running in (True, folder):
            with sherd.Cluster(running=running, scheme="plain") as c:
                is_usable(c)
                assert len(c) == 3
        nodes = folder / "nodes"
        with sherd.Cluster(nodes, key=folder / "key", scheme="plain") as c:
            is_usable(c)
        with sherd.Cluster(nodes.read_text().splitlines(), key=folder / "key", scheme="plain") as c:
            is_usable(c)
        sherd.keygen(tmp_path / "other.key")
        with pytest.raises(sherd.Error):
            sherd.Cluster(nodes, key=tmp_path / "other.key", connect_timeout=5)
        with pytest.raises(sherd.CannotOpen, match="/nowhere/nodes.txt"):
            sherd.Cluster("/nowhere/nodes.txt", key=folder / "key")
        with pytest.raises(sherd.Malformed, match="no line|list"):
            sherd.Cluster(["no line"], key=folder / "key")
    finally:
        subprocess.run([*run, "down"], check=True, capture_output=True)


# ---- threads and processes -------------------------------------------------------------------


def test_any_thread_may_call(shared):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda i: shared.multiply(A + i, B), range(8)):
            assert got.shape == (40, 20)
    is_usable(shared)


def test_a_copy_is_the_same_cluster(shared):
    assert copy.copy(shared) is shared and copy.deepcopy({"c": shared})["c"] is shared


def test_pickling_is_refused_with_a_sentence(shared):
    for x in (shared, shared.keep(A), shared.keep(A).T):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(x)


def test_a_forked_process_is_refused_and_does_no_harm(shared):
    kept = shared.keep(A)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 3.12 warns of threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            for call in (lambda: shared.multiply(A, B), lambda: kept @ B):
                try:
                    call()
                except sherd.ClosedError as e:
                    status = 0 if "forked" in e.message and "spawn" in e.hint else 2
            shared.close()
            kept.free()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    is_usable(shared)
    np.testing.assert_array_equal(kept @ B, A @ B)


def test_a_callback_that_calls_its_cluster_is_refused(shared):
    for call in (lambda p: shared.multiply(A, B), lambda p: shared.close()):
        with pytest.raises(sherd.ClosedError, match="a callback of a call"):
            shared.multiply(A, B, progress=call)
        is_usable(shared)


# ---- submit, cancel, interrupts --------------------------------------------------------------


def test_submit_queues_and_can_be_awaited(shared):
    futures = [shared.submit(A + i, B) for i in range(5)]
    assert isinstance(futures[0], concurrent.futures.Future)
    for f in concurrent.futures.as_completed(futures):
        assert f.result().shape == (40, 20)
    np.testing.assert_array_equal(futures[4].result(), (A + 4) @ B)

    async def several():
        return await asyncio.gather(*(shared.submit(A, B) for _ in range(3)))

    for got in asyncio.run(several()):
        np.testing.assert_array_equal(got, A @ B)


def test_a_submitted_product_raises_its_error(shared):
    f = shared.submit(A * np.nan, B)
    with pytest.raises(sherd.OutOfRange) as e:
        f.result()
    assert e.value.exit_code == 11
    with pytest.raises(sherd.WrongShape):
        shared.submit(A, A)


def test_a_running_product_is_cancelled(misbehaving):
    c = misbehaving("minute@node-5", 5, scheme="share")
    running = threading.Event()
    f = c.submit(A, B, progress=lambda p: running.set())
    later = c.submit(A, B)
    assert running.wait(100)
    assert later.cancel() and later.cancelled()
    assert f.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        f.result(timeout=50)
    is_usable(c, spare=1)


def test_an_interrupt_ends_a_product_and_leaves_a_usable_cluster(misbehaving):
    c = misbehaving("minute@node-5", 5, scheme="share")
    sent = []

    def interrupt(p):
        if not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        c.multiply(A, B, progress=interrupt)
    assert sent and c.report.tasks < 5  # node-5 would have answered after a minute
    is_usable(c, spare=1)


def test_a_product_of_a_kept_operand_needs_no_other_thread(shared, monkeypatch):
    kept, submit, submitted = shared.keep(A), shared._worker.submit, []

    def counted(*arguments):
        submitted.append(arguments)
        return submit(*arguments)

    monkeypatch.setattr(shared._worker, "submit", counted)
    for product in (lambda: kept @ B, lambda: shared.multiply(kept, B)):
        np.testing.assert_array_equal(product(), A @ B)
        assert not submitted
    is_usable(shared)
    shared.multiply(kept, B, progress=lambda p: None)
    assert len(submitted) == 2


def signal_in_a_product(c, kept, number):
    """Sends a signal when the product runs, of which one answer takes a minute."""

    def wait_and_send():
        while not c._worker._state.lock.locked():
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=wait_and_send)
    sender.start()
    try:
        kept @ B
    finally:
        sender.join()


def test_an_interrupt_ends_a_product_of_a_kept_operand(misbehaving, capfd):
    c = misbehaving("minute@node-5", 5, scheme="share")
    kept = c.keep(A)
    with pytest.raises(KeyboardInterrupt):
        signal_in_a_product(c, kept, signal.SIGINT)
    assert c.report.tasks < 5  # node-5 would have answered after a minute
    is_usable(c, spare=1)
    np.testing.assert_array_equal(c.keep(A, spare=1) @ B, A @ B)
    assert capfd.readouterr().err == ""


PROGRAM = """
import sys, threading, time
import numpy as np, sherd
A, B = np.arange(1200).reshape(40, 30) % 7, np.arange(600).reshape(30, 20) % 5
with sherd.Cluster(5, scheme="share", program=sys.argv[1]) as c:
    kept = c.keep(A)
    def tell():
        while not c._worker._state.lock.locked():
            time.sleep(0.01)
        print("running", flush=True)
    threading.Thread(target=tell).start()
    try:
        kept @ B if sys.argv[2] == "kept" else c.multiply(A, B)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    assert (c.multiply(A, B, spare=1) == A @ B).all()
    print([n.state for n in c.nodes].count("up") >= 4)
"""


@pytest.mark.parametrize("operand", ["kept", "fresh"])
def test_ctrl_c_in_a_terminal_leaves_the_nodes(operand):
    """A terminal sends the signal to all processes of the group, local nodes as well."""
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, MISBEHAVING, operand],
        env={**os.environ, "SHERD_TEST_MISBEHAVE": "minute@node-5"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines = []
    for line in run.stdout:
        lines.append(line.strip())
        if line == "running\n":
            os.killpg(run.pid, signal.SIGINT)
    stderr = run.stderr.read()
    assert run.wait() == 0, stderr
    assert lines == ["running", "interrupted", "True"]
    assert "Traceback" not in stderr


def test_the_handler_of_a_signal_ends_a_product_of_a_kept_operand(misbehaving, monkeypatch):
    c = misbehaving("minute@node-5", 5, scheme="share")
    kept = c.keep(A)
    before = signal.getsignal(signal.SIGUSR1)
    try:
        signal.signal(signal.SIGUSR1, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            signal_in_a_product(c, kept, signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, lambda *_: c.close())
        with pytest.raises(sherd.ClosedError, match="the handler of a signal"):
            signal_in_a_product(c, kept, signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    is_usable(c, spare=1)


def test_calls_of_several_threads_take_turns(shared):
    """Some on the threads of their callers, some on that of the cluster."""
    kept = shared.keep(A)

    def call(i):
        if i % 3 == 0:
            return shared.submit(kept, B * i).result()
        return kept @ (B * i) if i % 3 == 1 else shared.multiply(A, B * i)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for i, got in enumerate(pool.map(call, range(60))):
            np.testing.assert_array_equal(got, A @ (B * i))


def test_an_exception_of_the_last_callback_is_not_lost(shared):
    """The library does not ask after it, so the call itself succeeds."""
    for here in (False, True):
        with pytest.raises(ZeroDivisionError):
            shared._run(lambda: shared._worker._state.running._fail(ZeroDivisionError()), here=here)
    is_usable(shared)


def test_an_exception_of_a_callback_ends_the_product(misbehaving):
    c = misbehaving("minute@node-5", 5, scheme="share")
    with pytest.raises(ZeroDivisionError):
        c.multiply(A, B, progress=lambda p: 1 / 0)
    is_usable(c, spare=1)


def test_the_time_limit_expires(misbehaving):
    c = misbehaving("minute@node-5", 5, scheme="share")
    with pytest.raises(sherd.Timeout) as e:
        c.multiply(A, B, timeout=2)
    assert isinstance(e.value, TimeoutError) and e.value.exit_code == 124
    assert e.value.report is c.report


# ---- faults ----------------------------------------------------------------------------------


def test_killed_nodes_are_lost_until_too_few_are_left(caplog):
    with sherd.Cluster(5, scheme="share", spare=1) as c, caplog.at_level(logging.WARNING, "sherd"):
        os.kill(c.nodes[1].pid, signal.SIGKILL)
        while [n.state for n in c.nodes].count("up") == 5:
            is_usable(c)
        assert "node-2" in caplog.text
        for node in c.nodes[2:]:
            os.kill(node.pid, signal.SIGKILL)
        with pytest.raises(sherd.TooFewNodes) as e:
            c.multiply(A, B)
        assert e.value.exit_code == 7


def test_the_report_names_a_lost_node_that_the_others_waited_for(misbehaving):
    c = misbehaving("silent@node-2", 3, scheme="permute")
    is_usable(c)
    assert c.report.slowest == "node-2" and c.report.pace_seconds > 1
    assert "the others waited for node-2, which was lost: " in str(c.report)


def test_a_liar_is_banned_and_named(misbehaving, caplog):
    c = misbehaving("wrong@node-3", 5, scheme="share", spare=1)
    with caplog.at_level(logging.WARNING, "sherd"):
        while not c.report or not c.report.liars:  # its answer may come too late to be read
            is_usable(c)
    assert c.report.liars == ["node-3"] and "node-3" in caplog.text
    assert c.nodes[2].state == "banned" and "banned: node-3" in str(c.report)
    is_usable(c)


def test_a_liar_fails_a_strict_product(misbehaving):
    c = misbehaving("wrong@node-2", 2, scheme="plain", strict=True, exact=True)
    with pytest.raises(sherd.WrongResult, match="node-2") as e:
        c.multiply(A, B)
    assert e.value.exit_code == 8 and e.value.report.liars == ["node-2"]


def test_the_report_names_a_slow_node(misbehaving):
    c = misbehaving("slow@node-2", 3, scheme="share", colluding=1)
    for _ in range(20):  # on a busy machine the others may be as slow
        is_usable(c)
        if c.report.slowest == "node-2":
            break
    assert c.report.slowest == "node-2" and "waited for node-2" in str(c.report)
