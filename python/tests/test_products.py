"""Products, kept operands, their reports, certificates and forecasts."""

import gc
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

import sherd


def test_a_private_product_is_that_of_numpy(shared, operands):
    a, b = operands
    got = shared.multiply(a, b, check=True)
    np.testing.assert_array_equal(got, a @ b)
    r = shared.report
    assert r.nodes == 5 and r.check.equal and r.check.entries == got.size
    assert 0 < r.check_error < 1e-9 and r.distance.largest == 0
    assert [n.name for n in r.by_node] == [f"node-{i}" for i in range(1, 6)]
    assert sum(r.bytes_out) > a.size + b.size and r.exposed_a == [0.0] * 5


def test_a_report_reads_well(shared, operands):
    shared.multiply(*operands, check=True)
    text, page = str(shared.report), shared.report._repr_html_()
    assert "every answer was checked: a wrong one passes with probability 2^-" in text
    assert "equal to the result of this machine, bit for bit (800 entries)" in text
    assert "from which nothing is hidden" in text
    assert max(map(len, text.splitlines())) <= 80
    assert page.startswith("<table>") and "node-5" in page
    assert shared.report.seed.hex() not in text + page + repr(shared.report)
    assert shared.report.to_dict()["nodes"] == 5


@pytest.mark.parametrize("scheme", ["permute", "plain", "share", "share1"])
def test_every_scheme_computes_the_product(shared, operands, scheme):
    a, b = operands
    np.testing.assert_array_equal(shared.multiply(a, b, scheme=scheme, exact=True), a @ b)


def test_both_codes_of_shares(shared, operands):
    a, b = operands
    for code in ("lagrange", "inner"):
        np.testing.assert_array_equal(shared.multiply(a, b, code=code, spare=0), a @ b)
        assert shared.report.code == code


def test_bits_imply_exact_arithmetic(plain):
    rng = np.random.default_rng(2)
    a, b = rng.random((20, 30)), rng.random((30, 10))
    plain.multiply(a, b, bits=12)
    assert (plain.report.bits_a, plain.report.bits_b) == (12, 12)
    plain.multiply(a, b)
    assert plain.report.bits_a == 0 and plain.report.check_tolerant


def test_blind_products_use_up_masks(operands, tmp_path):
    a, b = operands
    masks = sherd.prepare(b, tmp_path / "B.masks", rows=100, bits=8, bits_b=8)
    assert (masks.rows, masks.left) == (100, 100)
    with sherd.Cluster(1, scheme="blind", masks=tmp_path / "B.masks") as c:
        np.testing.assert_array_equal(c.multiply(a, b), a @ b)
        assert c.report.masks_left == 60 == sherd.masks(tmp_path / "B.masks").left
        c.multiply(a, b)
        with pytest.raises(sherd.Error):
            c.multiply(a, b)


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_values_that_fixed_point_cannot_hold(shared, operands):
    a, b = operands
    with pytest.raises(sherd.OutOfRange, match="B: row 0, column 0 is NaN") as e:
        shared.multiply(a, b * np.nan)
    assert e.value.exit_code == 11 and e.value.hint and e.value.name == "ERANGE"


def test_elementwise_functions(plain, operands):
    a = operands[0] / 100
    np.testing.assert_allclose(plain.apply("sigmoid", a, check=True), 1 / (1 + np.exp(-a)))
    np.testing.assert_array_equal(plain.apply("minus", a, a), a * 0)
    assert plain.apply("relu", a[0]).shape == a[0].shape
    for arguments in (("sine", a), ("tanh", a, a), ("minus", a), ("dot", a, a)):
        with pytest.raises(sherd.InvalidArgument):
            plain.apply(*arguments)


# ---- kept operands ---------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["share", "plain", "permute"])
def test_a_kept_operand_serves_all_products(shared, operands, scheme):
    x, w = operands
    d = np.arange(80).reshape(40, 2)
    k = shared.keep(x, scheme=scheme, exact=True)
    assert k.shape == x.shape and k.T.shape == x.T.shape and k.T.T is k and k.ndim == 2
    for got, want in (
        (k @ w, x @ w),
        (d.T @ k, d.T @ x),
        (k.T @ d, x.T @ d),
        (w.T @ k.T, w.T @ x.T),
        (k @ w[:, 0], x @ w[:, 0]),
        (d[:, 0] @ k, d[:, 0] @ x),
        (shared.multiply(k, w), x @ w),
        (shared.submit(d.T, k).result(), d.T @ x),
    ):
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


def test_its_shares_are_sent_once(shared):
    x, w = np.ones((600, 300)), np.ones((300, 2))
    k = shared.keep(x)
    k @ w
    first = sum(shared.report.bytes_out)
    k @ w
    again = sum(shared.report.bytes_out)
    k.T @ np.ones((600, 2))
    assert again < first / 10 and sum(shared.report.bytes_out) < first / 10
    assert shared.report.check_error < 1e-9


def test_the_values_are_copied_when_it_is_kept(shared, operands):
    x, w = operands
    mine = x.copy()
    k = shared.keep(mine)
    mine[:] = 0
    np.testing.assert_array_equal(k @ w, x @ w)


def test_a_freed_operand_is_dropped(shared, operands):
    x, w = operands
    k = shared.keep(x)
    number = k._number
    k.free()
    k.free()
    with pytest.raises(sherd.ClosedError, match="was dropped"):
        k @ w
    k = shared.keep(x)
    number = k._number
    del k
    gc.collect()
    assert len(shared.nodes) == 5  # a call, before which the queue is empty
    assert number not in shared._nodes.kept


def test_what_a_kept_operand_cannot_do(shared, operands):
    x, w = operands
    k = shared.keep(x)
    with pytest.raises(sherd.WrongShape, match="A is 40 x 30 and B is 40 x 30"):
        k @ x
    with pytest.raises(sherd.WrongShape, match="A is 30 x 20 and B is 40 x 30"):
        w @ k
    with pytest.raises(sherd.InvalidArgument, match="both operands"):
        k @ k.T
    with pytest.raises(TypeError, match="at the nodes"):
        np.asarray(k)
    with pytest.raises(TypeError):
        k + x
    with pytest.raises(sherd.InvalidArgument, match="the options that it was kept with"):
        shared.multiply(k, w, check=True)
    with pytest.raises(sherd.WrongShape):
        shared.keep(x[0])
    with pytest.raises(sherd.OutOfRange):
        shared.keep(x * np.nan) @ w
    with pytest.raises(sherd.Unsupported):
        shared.keep(x, scheme="share1").T @ x


@pytest.mark.parametrize("options", [{}, {"code": "lagrange"}, {"code": "inner"}])
def test_an_operand_may_be_kept_for_one_direction(shared, operands, options):
    x, w = operands
    k = shared.keep(x, one_way=True, spare=0, **options)
    np.testing.assert_array_equal(k @ w, x @ w)
    chosen = [options["code"]] if options else ["lagrange", "inner"]
    assert shared.report.code in chosen
    np.testing.assert_array_equal(w.T @ k.T, w.T @ x.T)
    for product in (lambda: k.T @ x, lambda: x.T @ k):
        with pytest.raises(sherd.Unsupported, match="from the right only"):
            product()
    np.testing.assert_array_equal(k @ w, x @ w)


def test_an_operand_kept_by_the_inner_code_serves_one_direction(shared, operands):
    x, w = operands
    k = shared.keep(x, code="inner", spare=0)
    np.testing.assert_array_equal(k @ w, x @ w)
    assert shared.report.code == "inner" and shared.report.blocks == 3
    with pytest.raises(sherd.Unsupported, match="code inner multiplies") as e:
        k.T @ x
    assert "code lagrange" in e.value.hint
    with pytest.raises(sherd.InvalidArgument, match="needs the answers of all nodes"):
        shared.keep(x, code="inner")


def test_each_error_of_a_kept_operand_has_its_own_message(shared, operands):
    x, w = operands
    k = shared.keep(x)
    wrong = []
    for row, bad in ((3, np.nan), (7, np.inf)):
        b = w.astype(float)
        b[row, 0] = bad
        with pytest.raises(sherd.OutOfRange, match=f"row {row}, column 0 is") as e:
            k @ b
        wrong.append(e.value)
    assert wrong[0].message != wrong[1].message and "row 3" in str(wrong[0])
    np.testing.assert_allclose(k @ w, x @ w, atol=1e-2)


# ---- certificates ----------------------------------------------------------------------------


def test_a_certificate_is_verified(shared, operands, tmp_path):
    a, b = operands
    key = sherd.keygen(tmp_path / "me.key")
    assert key == sherd.fingerprint(tmp_path / "me.key") and key.startswith("sha256:")
    path = tmp_path / "C.json"
    got = shared.multiply(a, b, certificate=path, key=tmp_path / "me.key")
    found = sherd.verify(path, a, b, got, signer=key)
    assert found.equal and found.entries == got.size
    c = sherd.Certificate(path)
    assert (c.info.scheme, c.info.signer, len(c.nodes)) == ("share", key, 5)
    assert [(m.rows, m.cols, m.dtype) for m in c.matrices][2] == (40, 20, "<f8")
    with pytest.raises(sherd.Differs) as e:
        sherd.verify(path, a, b, got + 1)
    assert e.value.exit_code == 9
    with pytest.raises(sherd.Malformed):
        sherd.verify(path, a + 1, b, got)
    with pytest.raises(sherd.InvalidArgument):
        sherd.verify(path, a, got)
    with pytest.raises(sherd.AuthenticationFailed):
        sherd.verify(path, a, b, got, signer="sha256:" + "A" * 43)
    path.write_text(path.read_text().replace('"share"', '"blind"'))
    with pytest.raises(sherd.AuthenticationFailed):
        sherd.verify(path, a, b, got)


def test_vectors_of_a_certificate(shared, operands, tmp_path):
    a, b = operands
    path = tmp_path / "C.json"
    for x, y in ((a[0], b), (a, b[:, 0]), (a[0], b[:, 0])):
        assert sherd.verify(
            path, x, y, np.atleast_1d(shared.multiply(x, y, certificate=path))
        ).equal


def test_no_certificate_without_a_usable_key(shared, operands, tmp_path):
    (tmp_path / "bad.key").write_text("no key")
    (tmp_path / "bad.key").chmod(0o600)
    with pytest.raises(sherd.BadKey):
        shared.multiply(*operands, certificate=tmp_path / "C.json", key=tmp_path / "bad.key")
    assert not (tmp_path / "C.json").exists()
    sherd.keygen(tmp_path / "me.key")
    with pytest.raises(sherd.CannotOpen):
        sherd.keygen(tmp_path / "me.key")


# ---- forecasts -------------------------------------------------------------------------------


def test_a_plan_is_a_table_of_all_schemes(operands):
    p = sherd.plan(*operands, nodes=5, measure=False)
    assert p.shape == (40, 30, 20)
    by_scheme = {c.name.split(",")[0]: c for c in p.choices}
    assert set(by_scheme) == {"permute", "plain", "share", "share1"}
    assert by_scheme["share"].private and not by_scheme["permute"].private
    assert by_scheme["plain"].forecast.exposure_b == 1 and by_scheme["share"].forecast.bytes_out > 0
    text, page = str(p), p._repr_html_()
    assert "40 x 30 times 30 x 20" in text and "not private" in text
    assert by_scheme["share"].learns == "no single domain learns anything of A or B"
    wide = sherd.plan(*operands, nodes=9, colluding=2, scheme="share", measure=False)
    assert wide[0].learns == "any 2 domains together learn nothing of A or B"
    assert max(map(len, text.splitlines())) <= 80 and "<table>" in page


def test_a_plan_names_the_pace_and_the_link_of_a_device(operands):
    c = sherd.plan(*operands, nodes=5, scheme="share", measure=False)[0]
    values = {"pace": "gpu", "slack": 2, "bound": "device link", "seconds": 3.0}
    f = replace(c.forecast, **values, seconds_copies=2.0, seconds_nodes=0.5)
    text = " ".join(str(sherd.Plan((40, 30, 20), [replace(c, forecast=f)])).split())
    assert f"{c.name}: gpu sets the pace; the 2 slowest are spare" in text
    assert f"{c.name}: the device link is the limit: copies take 2.00 s, products 500.0 ms" in text


def test_a_plan_says_why_a_choice_is_not_possible():
    p = sherd.plan(shape=(100, 100, 100), nodes=2, measure=False)
    refused = [c for c in p.choices if c.error]
    assert refused and refused[0].forecast is None and isinstance(refused[0].error, sherd.Error)
    assert "share, 1 colluding: " in str(p)


def test_the_forecast_of_a_cluster_is_that_of_its_product(shared, operands):
    p = shared.plan(*operands)
    assert p[0].name.startswith("share") and p[0].forecast.seconds > 0
    shared.multiply(*operands)
    assert shared.report.work_out <= p[0].forecast.bytes_out


def test_wrong_arguments_of_a_plan(operands):
    for arguments in (
        {"nodes": 3},
        {"shape": (1, 2, 3)},
        {"nodes": 3, "shape": (0, 2, 3)},
        {"a": operands[0], "b": operands[1], "shape": (1, 2, 3), "nodes": 3},
    ):
        with pytest.raises(ValueError):
            sherd.plan(**arguments)


def test_no_certificate_in_place_of_another_file(shared, operands, tmp_path):
    a, b = operands
    key, path = tmp_path / "me.key", tmp_path / "A.npy"
    sherd.keygen(key)
    np.save(path, a)
    mapped = np.load(path, mmap_mode="r")
    for x, file in ((a, key), (mapped, path), (mapped[1:, :].T[:, 2:].T, path)):
        before = file.read_bytes()
        with pytest.raises(sherd.InvalidArgument, match="the certificate would replace .* also"):
            shared.multiply(x, b, certificate=file, key=key)
        assert file.read_bytes() == before
    shared.multiply(mapped, b, certificate=tmp_path / "C.json", key=key)


# ---- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("progress", [3, 1, 0, "yes"])
def test_progress_is_a_function_or_a_bool(shared, operands, progress):
    want = f"progress is {progress!r}, and not True, False or a function"
    for call in (
        lambda: shared.multiply(*operands, progress=progress),
        lambda: sherd.Cluster(3, progress=progress),
    ):
        with pytest.raises(TypeError) as e:
            call()
        assert str(e.value) == want


def test_progress_is_reported_to_a_function(shared, operands):
    seen = []
    shared.multiply(*operands, progress=seen.append)
    assert seen and seen[-1].done == seen[-1].total and seen[-1].nodes_up == 5
    shared.multiply(*operands)
    assert seen[-1].seconds < 60


def test_progress_is_a_bar_where_tqdm_is_installed(shared, operands, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, desc, leave):
            self.desc, self.closed = desc, False
            bars.append(self)

        def refresh(self):
            pass

        def close(self):
            self.closed = True

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    shared.multiply(*operands, progress=True)
    assert [b.desc for b in bars] == ["multiply"] and bars[0].closed
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    shared.multiply(*operands, progress=True)


def test_progress_is_a_bar_of_tqdm(shared, operands, capsys):
    pytest.importorskip("tqdm")
    shared.multiply(*operands, progress=True)
    bar = capsys.readouterr().err
    assert "multiply" in bar and "100%" in bar
    shared.apply("relu", operands[0], scheme="plain", progress=True)
    assert "relu" in capsys.readouterr().err


def test_a_check_counts_entries_that_are_nan(plain):
    x = np.eye(3)
    plain.multiply(x, x, check=True)
    assert plain.report.check.nan == 0 and "NaN" not in str(plain.report)
    x[1, 1] = np.nan
    plain.multiply(x, np.ones((3, 2)), check=True)
    assert plain.report.check.nan == 2
    assert "(6 entries, of which 2 are NaN in both)" in str(plain.report)


def test_schemes_are_described():
    found = {s.name: s for s in sherd.schemes()}
    assert found["share"].hides_a and found["share"].hides_b and not found["permute"].hides_a
    assert found["share"].about == "any colluding domains together learn nothing of A or B"


def test_entries_that_become_zero_are_reported(shared, caplog):
    rng = np.random.default_rng(7)
    x = rng.random((30, 20))
    x[0, 0] = 1e9
    w = rng.random((20, 10))
    with caplog.at_level("WARNING", logger="sherd"):
        shared.multiply(x, w, scheme="share")
    (record,) = (r for r in caplog.records if "became 0" in r.message)
    assert record.message == (
        "A: 599 of 600 entries that are not 0 are too small beside the largest and became 0"
    )
    caplog.clear()
    x[0, 0] = 1e6
    with caplog.at_level("WARNING", logger="sherd"):
        shared.multiply(x, w, scheme="share")
    (record,) = (r for r in caplog.records if "became 0" in r.message)
    assert record.message.endswith("became 0; bits=26 keeps more")
    caplog.clear()
    large = rng.random((400, 1024))
    large[399, 1023] = 1e9  # a large operand is sampled
    with caplog.at_level("WARNING", logger="sherd"):
        shared.multiply(large, rng.random((1024, 2)), scheme="share")
    (record,) = (r for r in caplog.records if "became 0" in r.message)
    assert " sampled entries that are not 0 are too small" in record.message
    caplog.clear()
    with caplog.at_level("WARNING", logger="sherd"):
        shared.multiply(x, w, scheme="plain")
        shared.multiply(w.T, w, scheme="share")
    assert not [r for r in caplog.records if "became 0" in r.message]


def test_options_of_private_schemes_are_refused_under_others(plain):
    with pytest.raises(
        sherd.InvalidArgument, match='colluding has no effect under scheme "permute"'
    ):
        sherd.Cluster(3, colluding=2)
    for option in ({"colluding": 2}, {"spare": 1}, {"code": "inner"}):
        with pytest.raises(sherd.InvalidArgument, match='no effect under scheme "plain", which is'):
            plain.multiply(np.ones((3, 3)), np.ones((3, 3)), **option)
