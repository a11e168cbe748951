"""
Estimators of scikit-learn whose fits compute their products over the nodes of a cluster.

::

    from sherd.sklearn import PCA, MLPClassifier, Ridge

    with sherd.Cluster(5, scheme="share", bits=26) as c:
        Ridge(alpha=1.0, cluster=c).fit(X, y).predict(X)

Without a cluster they compute on this machine. Predictions always do, since they need the fitted
coefficients, which nodes must not learn. The scheme of the cluster decides who learns what of X and
y: under "share", nothing but shapes. Its width decides how exact a fit is: use `bits=26`, the
largest, because one number of X that is much larger than the others takes bits from these.

A cluster is shared by the clones of an estimator. An estimator with a cluster cannot be pickled;
`set_params(cluster=None)` makes it possible after the fit.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.extmath import softmax, svd_flip
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._cluster import Cluster
from ._training import Model, Recipe, train

__all__ = ["PCA", "MLPClassifier", "Ridge"]


def _kept(x: Any, cluster: Optional[Cluster]) -> Any:
    """Returns a matrix for products with `@`: at the nodes, or here."""
    return x if cluster is None else cluster.keep(x)


class Ridge(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear least squares with l2 regularisation: minimises ||y - Xw||^2 + alpha ||w||^2.

    alpha: strength of the regularisation, 0 or more.
    fit_intercept: center X and y (on this machine), and fit an intercept.
    solver: "gram": one product X^T [X y] over the nodes, solved here; exact, for up to some
        thousands of features. "cg": conjugate gradients on X, which stays at the nodes: two
        products with vectors in each iteration.
    tol, max_iter: of "cg": relative norm of the residual, and most iterations (None: 10 times the
        features).
    cluster: the nodes; None: this machine.

    Attributes:
        coef_: (features) or (targets x features)
        intercept_: a number, or one for each target
        n_iter_: iterations of "cg", otherwise 1
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        solver: str = "gram",
        tol: float = 1e-6,
        max_iter: Optional[int] = None,
        cluster: Optional[Cluster] = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cluster = cluster

    def fit(self, X: Any, y: Any) -> Ridge:  # noqa: N803
        """Fits the coefficients. X: n x features; y: n, or n x targets."""
        if self.alpha < 0:
            raise ValueError(f"alpha is {self.alpha}, and not 0 or more")
        if self.solver not in ("gram", "cg"):
            raise ValueError(f"solver is {self.solver!r}, and neither 'gram' nor 'cg'")
        X, y = validate_data(  # noqa: N806
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True
        )
        targets = y.reshape(len(y), -1).astype(np.float64)
        mean, offset = np.zeros(X.shape[1]), np.zeros(targets.shape[1])
        if self.fit_intercept:
            mean, offset = X.mean(axis=0), targets.mean(axis=0)
        solve = self._gram if self.solver == "gram" else self._conjugate
        coef = solve(X - mean, targets - offset)
        intercept = offset - mean @ coef
        self.coef_ = coef[:, 0] if y.ndim == 1 else coef.T
        self.intercept_ = intercept[0] if y.ndim == 1 else intercept
        return self

    def _gram(self, x: Any, y: Any) -> Any:
        both = np.hstack([x, y])
        product = x.T @ both if self.cluster is None else self.cluster.multiply(x.T, both)
        gram, right = product[:, : x.shape[1]], product[:, x.shape[1] :]
        self.n_iter_ = 1
        # Least squares, since without regularisation the Gram matrix may be singular.
        return np.linalg.lstsq(gram + self.alpha * np.eye(len(gram)), right, rcond=None)[0]

    def _conjugate(self, x: Any, y: Any) -> Any:
        kept = _kept(x, self.cluster)
        w = np.zeros((x.shape[1], y.shape[1]))
        r = kept.T @ y
        p, norm = r.copy(), (r * r).sum(axis=0)
        enough = norm * self.tol**2
        self.n_iter_ = 0
        for _ in range(self.max_iter or 10 * x.shape[1]):
            self.n_iter_ += 1
            if (norm <= enough).all():
                break
            q = kept.T @ (kept @ p) + self.alpha * p
            curvature = (p * q).sum(axis=0)
            step = np.divide(norm, curvature, out=np.zeros_like(norm), where=curvature > 0)
            w += step * p
            r -= step * q
            before, norm = norm, (r * r).sum(axis=0)
            p = r + np.divide(norm, before, out=np.zeros_like(norm), where=before > 0) * p
        return w

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Returns X @ coef_ + intercept_, computed on this machine."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        return X @ self.coef_.T + self.intercept_


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components by a randomised range finder, on X that stays at the nodes.

    n_components: number of components; None: the smaller dimension of X.
    n_oversamples: more directions than components that are searched.
    n_iter: passes over X that sharpen the directions; each is two products.
    random_state: seed of the directions.
    cluster: the nodes; None: this machine.

    Attributes:
        components_: (components x features), by decreasing variance
        explained_variance_, explained_variance_ratio_: of each component
        singular_values_, mean_, n_components_
    """

    def __init__(
        self,
        n_components: Optional[int] = None,
        *,
        n_oversamples: int = 10,
        n_iter: int = 4,
        random_state: Any = None,
        cluster: Optional[Cluster] = None,
    ) -> None:
        self.n_components = n_components
        self.n_oversamples = n_oversamples
        self.n_iter = n_iter
        self.random_state = random_state
        self.cluster = cluster

    def fit(self, X: Any, y: Any = None) -> PCA:  # noqa: N803
        """Fits the components. X: n x features. y is ignored."""
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)  # noqa: N806
        least = min(X.shape)
        count = least if self.n_components is None else self.n_components
        if not 1 <= count <= least:
            raise ValueError(f"n_components is {count}, and not a number from 1 to {least}")
        self.mean_ = X.mean(axis=0)
        centered = X - self.mean_
        kept = _kept(centered, self.cluster)
        random = check_random_state(self.random_state)
        wide = min(count + self.n_oversamples, least)
        q = np.linalg.qr(kept @ random.standard_normal((X.shape[1], wide)))[0]
        for _ in range(self.n_iter):
            q = np.linalg.qr(kept.T @ q)[0]
            q = np.linalg.qr(kept @ q)[0]
        u, s, v = np.linalg.svd(q.T @ kept, full_matrices=False)
        u, v = svd_flip(u, v, u_based_decision=False)
        self.n_components_ = count
        self.components_ = v[:count]
        self.singular_values_ = s[:count]
        self.explained_variance_ = s[:count] ** 2 / (len(X) - 1)
        total = (centered**2).sum() / (len(X) - 1)
        self.explained_variance_ratio_ = self.explained_variance_ / (total or 1.0)
        self._n_features_out = count
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Returns the components of each row, computed on this machine."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        return (X - self.mean_) @ self.components_.T

    def inverse_transform(self, X: Any) -> Any:  # noqa: N803
        """Returns rows of the original space for components."""
        check_is_fitted(self)
        return np.asarray(X) @ self.components_ + self.mean_


class MLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network of dense layers for classification, trained by `sherd.train` with Adam.

    hidden_layer_sizes: widths of the hidden layers.
    activation: "relu", "tanh" or "logistic".
    alpha: l2 regularisation. batch_size: None: 200, or all examples if there are fewer.
    learning_rate_init: rate of Adam. max_iter: epochs.
    random_state: seed of parameters and order.
    cluster: the nodes that compute the products of the training; None: this machine.

    Attributes:
        classes_: the labels
        model_: the `sherd.Model`
        loss_: mean loss of the last epoch
        n_iter_: epochs
    """

    def __init__(
        self,
        hidden_layer_sizes: tuple[int, ...] = (100,),
        activation: str = "relu",
        *,
        alpha: float = 0.0001,
        batch_size: Optional[int] = None,
        learning_rate_init: float = 0.005,
        max_iter: int = 200,
        random_state: Any = None,
        cluster: Optional[Cluster] = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.cluster = cluster

    def fit(self, X: Any, y: Any) -> MLPClassifier:  # noqa: N803
        """Trains the network. X: n x features; y: n labels of any kind."""
        X, y = validate_data(self, X, y, dtype=np.float64)  # noqa: N806
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y has one class only, and a classifier needs two")
        activation = {"logistic": "sigmoid"}.get(self.activation, self.activation)
        layers = [x for n in self.hidden_layer_sizes for x in (f"dense {n}", activation)]
        recipe = Recipe.of_layers(
            *layers,
            f"dense {len(self.classes_)}",
            input=X.shape[1],
            batch=min(self.batch_size or 200, len(X)),
            epochs=self.max_iter,
            rate=self.learning_rate_init,
            l2=self.alpha,
        )
        seed = int(check_random_state(self.random_state).randint(2**31))
        data = (X, labels.astype(np.uint32))
        self.model_: Model = train(recipe, data=data, seed=seed, cluster=self.cluster)
        self.loss_ = self.model_.history[-1].loss
        self.n_iter_ = self.max_iter
        return self

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Returns the probability of each class, computed on this machine."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)  # noqa: N806
        return softmax(self.model_.predict(X))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Returns the label of each row, computed on this machine."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
