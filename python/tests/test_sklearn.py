"""The estimators of scikit-learn: its own checks, and fits over a cluster."""

import copy
import pickle

import numpy as np
import pytest

import sherd

pytest.importorskip("sklearn")
from sklearn import decomposition, linear_model  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_digits, load_iris  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from sherd.sklearn import PCA, MLPClassifier, Ridge  # noqa: E402

RNG = np.random.default_rng(8)
X = RNG.standard_normal((200, 12))
Y = X @ RNG.standard_normal(12) + 3


@pytest.fixture(scope="module")
def exact():
    with sherd.Cluster(5, scheme="share", bits=26) as c:
        yield c


@pytest.mark.parametrize(
    "estimator",
    [Ridge(), Ridge(solver="cg"), PCA(random_state=0), MLPClassifier(max_iter=60, random_state=0)],
    ids=repr,
)
def test_the_checks_of_scikit_learn(estimator):
    check_estimator(estimator)


# The checks that cannot apply to an estimator with a cluster.
CANNOT = {
    "check_estimators_pickle": "connections cannot be pickled; set_params(cluster=None) can",
    "check_estimators_overwrite_params": "it compares parameters by pickling them",
}


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        Ridge(solver="cg"),
        PCA(random_state=0),
        MLPClassifier(max_iter=20, random_state=0),
    ],
    ids=repr,
)
def test_the_checks_of_scikit_learn_over_a_cluster(estimator, exact):
    check_estimator(estimator.set_params(cluster=exact), expected_failed_checks=CANNOT)


def test_an_estimator_without_its_cluster_is_pickled(exact):
    fitted = Ridge(cluster=exact).fit(X, Y)
    with pytest.raises(TypeError, match="a Cluster cannot be pickled"):
        pickle.dumps(fitted)
    got = pickle.loads(pickle.dumps(fitted.set_params(cluster=None)))
    np.testing.assert_array_equal(got.predict(X), fitted.predict(X))


@pytest.mark.parametrize("solver", ["gram", "cg"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_private_ridge_is_that_of_scikit_learn(exact, solver, fit_intercept):
    want = linear_model.Ridge(alpha=2, fit_intercept=fit_intercept).fit(X, Y)
    got = Ridge(alpha=2, fit_intercept=fit_intercept, solver=solver, cluster=exact).fit(X, Y)
    np.testing.assert_allclose(got.coef_, want.coef_, atol=1e-4)
    np.testing.assert_allclose(got.predict(X), want.predict(X), atol=1e-3)
    assert sum(exact.report.bytes_out) > 0
    several = Ridge(alpha=2, solver=solver, cluster=exact).fit(X, np.c_[Y, -Y])
    assert several.coef_.shape == (2, 12) and several.intercept_.shape == (2,)


def test_private_components_are_those_of_scikit_learn(exact):
    digits = load_digits().data[:300]
    want = decomposition.PCA(5, svd_solver="full").fit(digits)
    got = PCA(5, random_state=1, cluster=exact).fit(digits)
    np.testing.assert_allclose(abs((got.components_ * want.components_).sum(axis=1)), 1, atol=1e-3)
    np.testing.assert_allclose(got.explained_variance_, want.explained_variance_, rtol=1e-3)
    back = got.inverse_transform(got.transform(digits))
    assert np.square(back - digits).mean() < np.square(digits - digits.mean(axis=0)).mean()


def test_a_private_classifier_learns():
    data = load_iris()
    with sherd.Cluster(3, scheme="share") as c:
        m = MLPClassifier((16,), batch_size=50, max_iter=40, random_state=1, cluster=c)
        m.set_params(learning_rate_init=0.02)
        m.fit(data.data, data.target_names[data.target])
        assert m.score(data.data, data.target_names[data.target]) > 0.85
        assert m.model_.report.scheme == "share" and set(m.classes_) == set(data.target_names)
        np.testing.assert_allclose(m.predict_proba(data.data).sum(axis=1), 1)


def test_a_clone_has_the_same_cluster(exact):
    assert clone(Ridge(cluster=exact)).cluster is exact
    assert copy.deepcopy(PCA(cluster=exact)).cluster is exact


def test_wrong_parameters(exact):
    for estimator in (Ridge(alpha=-1), Ridge(solver="magic"), PCA(13), PCA(0)):
        with pytest.raises(ValueError):
            estimator.fit(X, Y)
    with pytest.raises(ValueError, match="one class"):
        MLPClassifier().fit(X, np.zeros(200))
    with pytest.raises(sherd.Malformed):
        MLPClassifier(activation="magic").fit(X, Y > 3)
