"""Trainings, and the models that they make."""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from ._arrays import array_of, doubles, foreign, numbers, same_dtype_of, view
from ._cluster import Cluster
from ._errors import Error, InvalidArgument, WrongShape, call
from ._handle import Handle, made
from ._library import callback, ffi, hold, lib, new, path_of, text_of, wrong_type
from ._options import (
    PathLike,
    ProductOptions,
    ProductSettings,
    milliseconds,
    product_options,
    refuse_unknown,
    seed_of,
)
from ._reading import read
from ._record import time_text
from ._records import (
    DataInfo,
    EpochFields,
    Exposure,
    Gradients,
    Prediction,
    TrainingReport,
    Update,
)
from ._worker import ProgressOption, Worker, run_alone

if TYPE_CHECKING:
    from typing_extensions import Unpack

Array = npt.NDArray[np.float64]

_BY = {"products": lib.SHERD_BY_PRODUCTS, "gradients": lib.SHERD_BY_GRADIENTS}
_AGGREGATES = {
    "plain": lib.SHERD_AGGREGATE_PLAIN,
    "secure": lib.SHERD_AGGREGATE_SECURE,
    "ring": lib.SHERD_AGGREGATE_RING,
    "halving-doubling": lib.SHERD_AGGREGATE_HALVING_DOUBLING,
}


class TrainingOptions(ProductSettings, total=False):
    """Options of `train` beside those of products, which apply to training by products.

    By products:
        stochastic: fixed point: round operands up or down at random.
        elementwise_at_nodes: nodes compute activations, too; not in private schemes.
        meta: metadata file for the products of a step (scheme "permute"); meta_reuse: it may have
            served another one.

    By gradients (`bits` and `colluding` apply, too):
        aggregate: "plain" (default), "secure", "ring" or "halving-doubling".
        shards: parts of a batch, for any number of nodes; default 8.
        floats: float64 instead of fixed point.
        asynchronous: apply each gradient when it arrives; staleness_max: how many updates it may
            miss.
        local_steps, local_batch, weighted: average parameters after so many local steps of each
            shard.
        allow_drop: drop the work of a lost node.
        threads: without nodes: threads of this process.

    aggregate="secure":
        examples: places of each node in an epoch. survivors: nodes that must remain to open a sum.
        clip, noise, delta: differential privacy. simulate: give the nodes this process's data,
            which hides nothing.

    Checkpoints:
        checkpoint_every: steps between two. checkpoint_keep: keep only so many.
    """

    stochastic: bool
    elementwise_at_nodes: bool
    meta: PathLike
    meta_reuse: bool
    aggregate: str
    shards: int
    floats: bool
    asynchronous: bool
    staleness_max: int
    local_steps: int
    local_batch: int
    weighted: bool
    allow_drop: bool
    threads: int
    examples: int
    survivors: int
    clip: float
    noise: float
    delta: float
    simulate: bool
    checkpoint_every: int
    checkpoint_keep: int


class Epoch(EpochFields):
    """The figures of one report of a training; str() is one line. Members: those of EpochFields."""

    def __str__(self) -> str:
        def figures(loss: float, accuracy: float) -> str:
            return f"{loss:.4f}" + (
                "" if math.isnan(accuracy) else f", accuracy {100 * accuracy:.1f} %"
            )

        line = f"epoch {self.epoch}, step {self.step}: loss {figures(self.loss, self.accuracy)}"
        if not math.isnan(self.validation_loss):
            line += f"; validation {figures(self.validation_loss, self.validation_accuracy)}"
        if not math.isnan(self.epsilon):
            line += f"; epsilon {self.epsilon:.3g} at delta {self.delta:.0e}"
        return line if math.isnan(self.seconds) else f"{line}; {time_text(self.seconds)}"


class Recipe(Handle):
    """A network, the kind of its data, and the method of training.

    recipe: the name of a built-in one ("spiral", `recipes()`), the path of a file, or a text of
        `key = value` lines; docs/TRAINING.md lists the keys.
    settings: keys in place of those of the recipe, such as epochs=10 or batch="all";
        docs/TRAINING.md lists them.

    Raises CannotOpen (no such recipe; the hint names the nearest), Malformed (the message names the
    line).
    """

    def __init__(self, recipe: Union[str, PathLike, Recipe], **settings: Any) -> None:
        out = made("sherd_recipe")
        if isinstance(recipe, Recipe):
            call("sherd_recipe_parse", out, recipe.text.encode(), recipe.name.encode())
        elif isinstance(recipe, str) and "=" in recipe:
            call("sherd_recipe_parse", out, recipe.encode(), ffi.NULL)
        else:
            call("sherd_recipe_load", out, path_of(recipe, "recipe"))
        super().__init__(out[0], lib.sherd_recipe_free)
        for key, value in settings.items():
            call("sherd_recipe_set", self._pointer, key.encode(), _setting(value).encode())

    @classmethod
    def of_layers(cls, *layers: str, input: Union[int, str], **settings: Any) -> Recipe:  # noqa: A002
        """Makes a recipe for arrays from layers: ``Recipe.of_layers("dense 16", "relu", "dense 3",
        input=4, ...)``.

        input: numbers of an example, or "28 x 28 x 1". settings: loss, rate, epochs and other keys
        of a recipe; those that have no default in docs/TRAINING.md have one here:
        loss="cross-entropy", rate=0.01, epochs=10, batch=32, method="adam".
        """
        keys: dict[str, Any] = {
            "loss": "cross-entropy",
            "data": "file",
            "batch": 32,
            "method": "adam",
            "rate": 0.01,
            "epochs": 10,
            **settings,
        }
        if "steps" in settings:
            del keys["epochs"]
        lines = [
            f"input = {input}",
            *(f"layer = {layer}" for layer in layers),
            *(f"{key} = {_setting(value)}" for key, value in keys.items()),
        ]
        return cls("\n".join(lines) + "\n")

    @property
    def name(self) -> str:
        """The name or path that it was loaded by."""
        return text_of(lib.sherd_recipe_name(self._pointer))

    @property
    def text(self) -> str:
        """The canonical text, with every key. Equal recipes have equal texts."""
        return text_of(lib.sherd_recipe_text(self._pointer))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Recipe: {self.name}>"

    def __reduce__(self) -> Any:
        return Recipe, (self.text,)


def _setting(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def recipes() -> list[str]:
    """Returns the names of the built-in recipes."""
    found: list[str] = []
    while True:
        name = lib.sherd_recipe_builtin_at(len(found))
        if not name:
            return found
        found.append(text_of(name))


def _free_model(owner: Any) -> Callable[[Any], None]:
    """Returns what frees a model: it belongs to a training if there is one."""

    def free(pointer: Any) -> None:
        if owner is None:
            lib.sherd_model_free(pointer)
        else:
            lib.sherd_training_free(owner)

    return free


def _examples(x: Any, name: str) -> npt.NDArray[Any]:
    """Returns examples as rows: images of any dimensions are flattened."""
    array = numbers(x, name)
    if array.ndim == 0:
        raise WrongShape(f"{name} has no dimension; examples are its rows")
    return array[:, None] if array.ndim == 1 else array.reshape(array.shape[0], -1)


class Data:
    """A data set, as `load_data` and a training make it. The arrays are copies.

    Attributes:
        info: its size and source; `info.embedded`: digits that come with sherd replace images
        x: n x inputs, divided and standardised as the recipe says; bytes if they are not divided
        y: n labels (int64), or n x outputs values (float64); None: there are no targets
        validation_x, validation_y: likewise, for validation; without rows if there is none
    """

    def __init__(self, pointer: Any) -> None:
        info = new("sherd_data_info")
        call("sherd_data_get", pointer, info)
        self.info = read(DataInfo, info)
        self.x, self.y = self._part(pointer, lib.SHERD_DATA_TRAINING)
        self.validation_x, self.validation_y = self._part(pointer, lib.SHERD_DATA_VALIDATION)

    def _part(self, pointer: Any, part: int) -> tuple[npt.NDArray[Any], Optional[npt.NDArray[Any]]]:
        x = same_dtype_of(lib.sherd_data_x(pointer, part))
        y = same_dtype_of(lib.sherd_data_y(pointer, part))
        if len(y) == 0:
            return x.reshape(len(x), self.info.inputs), None
        return x, y[:, 0].astype(np.int64) if self.info.labels else y

    def __repr__(self) -> str:
        return f"<Data: {self.info.text}>"


def load_data(
    recipe: Union[str, PathLike, Recipe],
    data: Optional[PathLike] = None,
    *,
    seed: Optional[bytes] = None,
    **settings: Any,
) -> Data:
    """Loads the examples that a recipe trains on, and checks them.

    ::

        digits = sherd.load_data("mnist", examples=1000)   # digits that come with sherd
        images = digits.x.reshape(-1, 28, 28)

    data: the path of a file or folder; None: what the recipe names, such as points of a spiral, or
        digits that come with sherd in place of images.
    seed: 32 bytes, from which generated examples and the choice of held-out ones derive; None:
        fresh. `Model.data` has the examples of a training.
    settings: keys of the recipe to replace, such as examples=1000.

    Raises CannotOpen, Malformed, WrongShape, OutOfRange (a value that is not finite),
    InvalidArgument (the recipe is for files, and none is given).
    """
    secret = seed_of(seed)
    out, made_recipe = made("sherd_data"), Recipe(recipe, **settings)
    call(
        "sherd_data_load",
        out,
        made_recipe._pointer,
        _source(data, None),
        secret,
    )
    try:
        return Data(out[0])
    finally:
        lib.sherd_data_free(out[0])


class Model(Handle):
    """A network with its parameters, and the recipe that it was trained by.

    path: a file of `save`, or of `sherd train -o`.

    Attributes:
        report: the report of its training; None for a model that was loaded
        history: the reports of its training, one after each epoch or as the recipe says
        gradients: how gradients were computed; None unless it was trained by gradients
        exposures: what each node was shown of the operands of each operation of a step, if it was
            trained with metadata

    Raises CannotOpen, Malformed, WrongShape, OutOfRange (a parameter that is not finite).
    """

    report: Optional[TrainingReport] = None
    history: Sequence[Epoch] = ()
    gradients: Optional[Gradients] = None
    exposures: Sequence[Exposure] = ()
    _borrowed: Any = None

    def __init__(self, path: PathLike) -> None:
        out = made("sherd_model")
        call("sherd_model_load", out, path_of(path))
        self._take(out[0], None)

    def _take(self, pointer: Any, training: Any) -> None:
        super().__init__(training if training is not None else pointer, _free_model(training))
        self._model = pointer
        self._training = training

    @property
    def recipe(self) -> Recipe:
        """A copy of the recipe."""
        return Recipe(text_of(lib.sherd_recipe_text(lib.sherd_model_recipe(self._model))))

    @property
    def inputs(self) -> int:
        """The number of numbers of one example."""
        return int(lib.sherd_model_inputs(self._model))

    @property
    def outputs(self) -> int:
        """The number of numbers of one output."""
        return int(lib.sherd_model_outputs(self._model))

    @property
    def classes(self) -> Optional[list[str]]:
        """The names of the classes in the order of the outputs; None if classes are numbers."""
        return _names(lambda i: lib.sherd_model_class_name(self._model, i)) or None

    @property
    def parameters(self) -> dict[str, Array]:
        """Copies of the parameters: "w1" (inputs x outputs), "b1" (1 x outputs), "w2", ..."""
        names = _names(lambda i: lib.sherd_model_parameter_name(self._model, i))
        with self._lock:
            return {
                n: array_of(lib.sherd_model_parameter_find(self._model, n.encode())) for n in names
            }

    @property
    def data(self) -> Data:
        """A copy of the examples that it was trained on; those that nodes have are not among them.

        Raises InvalidArgument: a model that was loaded.
        """
        with self._lock:
            return Data(lib.sherd_training_data(self._its_training()))

    def _its_training(self) -> Any:
        if self._training is None:
            raise InvalidArgument(
                "the model was loaded, and its training is not known",
                "predict, and count the labels",
            )
        return self._training

    @property
    def confusion(self) -> npt.NDArray[np.uint64]:
        """Counts of examples by label (rows) and prediction (columns): of the validation data, or
        of training data.

        Raises Unsupported: no labels, or a model that was loaded.
        """
        counts = np.zeros((self.outputs, self.outputs), np.uint64)
        with self._lock:
            call(
                "sherd_training_confusion",
                self._its_training(),
                ffi.cast("uint64_t *", counts.ctypes.data),
                ffi.NULL,
            )
        return counts

    def save(self, path: PathLike) -> None:
        """Writes the model as an .npz that numpy opens; an earlier file survives every failure.

        Raises CannotOpen, CannotReadOrWrite.
        """
        with self._lock:
            call("sherd_model_save", self._model, path_of(path))

    def predict(
        self,
        x: Any,
        *,
        cluster: Optional[Cluster] = None,
        check: bool = False,
        labels: bool = False,
        progress: ProgressOption = None,
        **options: Unpack[ProductOptions],
    ) -> npt.NDArray[Any]:
        """Computes the outputs of the last layer for each row of x: an array of n x outputs,
        float64.

        x: n x inputs, or n images. It is divided and standardised as in the training.
        cluster: the nodes that compute the products; None: this machine.
        check: also compute on this machine, and compare bit for bit; needs a cluster and fixed
            point. Raises Differs.
        labels: return the class of each row instead: its number, or its name if classes have names.
        options: ProductOptions, in place of those of the cluster.

        Raises WrongShape, OutOfRange (x is not finite), Unsupported ("share1" and "blind" would
        show weights), and as `Cluster.multiply`. Who learns it: what the scheme leaves open of x,
        of weights, and of what is between layers.
        """
        array = _examples(x, "x")
        if array.shape[1] != self.inputs:
            one = array.size == self.inputs
            raise WrongShape(
                "x is {}, and the model has {} inputs".format(
                    " x ".join(map(str, np.shape(x))), self.inputs
                ),
                "examples are rows: x[None] is one of them, as X[:1] is" if one else "",
            )
        out = np.empty((array.shape[0], self.outputs))
        refuse_without_nodes(cluster, options)
        how = product_options(cluster._merged(options) if cluster else options)

        def work(worker: Worker) -> None:
            opt = new(
                "sherd_predict_options",
                products=how,
                check=check,
                cluster=cluster._nodes.pointer if cluster else None,
            )
            worker.hooks(opt.hooks)
            report = new("sherd_predict_report")
            call(
                "sherd_model_predict",
                self._model,
                view(array),
                doubles(out),
                max(self.outputs, 1),
                opt,
                report,
            )
            self.prediction = read(Prediction, report)

        if cluster is not None:
            with self._lock:
                cluster._run(lambda: work(cluster._worker), progress, "predict")
        else:
            self._run("predict", work, progress)
        return self._classes(out) if labels else out

    prediction: Optional[Prediction] = None

    def _classes(self, out: Array) -> npt.NDArray[Any]:
        found = np.empty(out.shape[0], np.uint32)
        lib.sherd_predict_labels(
            doubles(out),
            out.shape[1],
            out.shape[0],
            out.shape[1],
            ffi.cast("uint32_t *", found.ctypes.data),
        )
        return np.array(self.classes)[found] if self.classes else found

    def __repr__(self) -> str:
        return f"<Model: {self.inputs} inputs, {self.outputs} outputs, recipe {self.recipe.name}>"

    def __reduce__(self) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.npz")
            self.save(path)
            with open(path, "rb") as f:
                return _unpickle, (f.read(),)


def _unpickle(content: bytes) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.npz")
        with open(path, "wb") as f:
            f.write(content)
        return Model(path)


def _names(read_one: Callable[[int], Any]) -> list[str]:
    found: list[str] = []
    while True:
        name = read_one(len(found))
        if not name:
            return found
        found.append(text_of(name))


def _source(data: Any, validation: Any) -> Any:
    """Makes a sherd_data_source; a training borrows its arrays."""
    if data is None:
        if validation is not None:
            raise InvalidArgument("validation is given without data")
        return ffi.NULL
    if isinstance(data, (str, os.PathLike)):
        return new("sherd_data_source", path=path_of(data))
    members: dict[str, Any] = {}
    kept: list[Any] = []
    for pair, names in ((data, ("x", "y")), (validation, ("validation_x", "validation_y"))):
        if pair is None:
            continue
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidArgument(
                "data and validation are pairs of arrays (x, y)", "or data is the path of a file"
            )
        for name, x in zip(names, pair):
            kept.append(_examples(_labels(x, name) if name[-1] == "y" else x, name))
            members[name] = view(kept[-1])
    source = new("sherd_data_source", **members)
    hold(source, *kept)
    return source


def _labels(y: Any, name: str) -> Any:
    """Returns labels as an array; refuses texts."""
    array = foreign(y, name)
    if array.dtype.kind in "US":
        raise TypeError(
            f"{name} has texts, and labels are numbers: names, {name} = "
            f"numpy.unique({name}, return_inverse=True) makes them"
        )
    return array


# Options of products that have no effect without nodes.
_OF_NODES = ("scheme", "spare", "code", "masks", "group", "balanced", "shuffle_rows", "encoding")


def refuse_without_nodes(cluster: Optional[Cluster], options: Mapping[str, Any]) -> None:
    """Raises InvalidArgument for an option that promises something of nodes where there are none,
    and TypeError for something that is no cluster.
    """
    if cluster is not None and not isinstance(cluster, Cluster):
        raise wrong_type("cluster", cluster, "a Cluster, such as sherd.Cluster(3)")
    for name in _OF_NODES if cluster is None else ():
        if name in options:
            raise InvalidArgument(
                f"{name}={options[name]!r} has no effect without nodes: all is computed on this "
                "machine",
                f"add cluster=sherd.Cluster(3), or leave {name} out",
            )


def _train_options(options: Any, recipe: Recipe) -> tuple[dict[str, Any], ProductOptions]:
    """Returns the members of sherd_train_options and the options of products."""

    def is_key(name: str, value: Any) -> bool:
        try:
            Recipe(recipe, **{name: value})
        except Error:
            return False
        return True

    refuse_unknown(options, TrainingOptions.__annotations__, "a training", is_key)
    given: dict[str, Any] = dict(options)
    common = ProductSettings.__annotations__
    products: Any = {k: given.pop(k) for k in list(given) if k in common}
    aggregate = given.pop("aggregate", "plain")
    if aggregate not in _AGGREGATES:
        raise InvalidArgument(
            f"there is no way {aggregate!r} to add gradients", "one of " + ", ".join(_AGGREGATES)
        )
    given["aggregate"] = _AGGREGATES[aggregate]
    if "asynchronous" in given:
        given["async"] = given.pop("asynchronous")
    if "staleness_max" in given:
        given["staleness_bounded"] = True
    if "meta" in given:
        given["meta"] = path_of(given["meta"], "meta")
    return given, products


def train(
    recipe: Union[str, PathLike, Recipe],
    data: Any = None,
    *,
    cluster: Optional[Cluster] = None,
    validation: Any = None,
    by: str = "products",
    settings: Optional[dict[str, Any]] = None,
    initial: Union[Model, PathLike, Mapping[str, Any], None] = None,
    on_epoch: Optional[Callable[[Epoch], object]] = None,
    on_update: Optional[Callable[[Update], object]] = None,
    check: bool = False,
    seed: Union[int, bytes, None] = None,
    checkpoints: Optional[PathLike] = None,
    resume: bool = False,
    timeout: Optional[float] = None,
    progress: ProgressOption = None,
    **options: Unpack[TrainingOptions],
) -> Model:
    """Trains a network, on this machine or over the nodes of a cluster, and returns the model.

    ::

        model = sherd.train("mnist-proper", data=(x, y), cluster=c, on_epoch=print)
        model.predict(x, cluster=c)

    recipe: a built-in recipe, a path, a text, or a `Recipe` (`Recipe.of_layers`).
    data: a pair of arrays: x, an example in each row (images are flattened), and y, a label in each
        row (whole numbers from 0), or values if the recipe says so; or the path of a file or
        folder; None: what the recipe names.
    validation: a pair of arrays for validation.
    by: "products": the network stays here, and nodes compute products under the scheme;
        "gradients": nodes have examples and parameters in clear and compute gradients.
    settings: keys of the recipe to replace, such as {"epochs": 2}.
    initial: the first parameters: a `Model`, the path of an .npz, or arrays by name, {"w1": ...,
        "b1": ..., "w2": ...}, of the shapes of `Model.parameters`; None: they derive from the seed.
    on_epoch: is called with each `Epoch`. An exception ends the training and is raised.
    on_update: by gradients: is called with each `Update` of the parameters. An exception ends the
        training at the next report, and is raised.
    check: also train on this machine and compare every parameter after each epoch, bit for bit;
        needs a cluster and fixed point. Raises Differs.
    seed: a number, or 32 bytes (a secret), from which parameters and order derive; None: fresh, or
        that of a checkpoint.
    checkpoints: folder of checkpoints (mode 0700); resume: continue from the newest one.
    timeout: seconds for the training.
    options: TrainingOptions; those of products in place of those of the cluster.

    In fixed point, recipe, data and seed determine every bit of the result. Data is not copied
    where it need not be converted. An interrupt ends the training after the step; with
    `checkpoints` it can be resumed.

    Raises InvalidArgument, Malformed (recipe, data, layers that do not fit), WrongShape, OutOfRange
    (data that is not finite, or a training that diverged), TooFewNodes, Unsupported, Timeout,
    Stopped, ChainBroken, and as `Cluster.multiply`.

    Who learns it: by products, what the scheme leaves open; by gradients, nodes see examples and
        parameters.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise wrong_type("settings", settings, 'a dict, such as {"epochs": 5}')
    for name, function in (("on_epoch", on_epoch), ("on_update", on_update)):
        if function is not None and not callable(function):
            raise wrong_type(name, function, "a function")
    refuse_without_nodes(cluster, options)
    made_recipe = Recipe(recipe, **(settings or {}))
    first = _initial(made_recipe, initial)
    if by not in _BY:
        raise InvalidArgument(f"there is no training by {by!r}", "by products or by gradients")
    members, products = _train_options(options, made_recipe)
    chosen: dict[str, Any] = dict(products)
    how = product_options(cluster._merged(products) if cluster else products)
    if by == "gradients":
        members.update({k: chosen[k] for k in ("bits", "colluding") if k in chosen})
    source = _source(data, validation)
    if isinstance(seed, (int, np.integer)):
        if not 0 <= seed < 2**64:
            raise InvalidArgument(f"seed is {seed}, and not a number from 0 to 2**64 - 1")
        members["seed_number"] = ffi.new("uint64_t *", int(seed))
    elif seed is not None:
        members["seed"] = seed_of(seed)
    failures: list[BaseException] = []

    @callback("int(void *, const sherd_epoch *, sherd_diag *)", error=lib.SHERD_EINTERNAL)
    def epoch(ctx: Any, e: Any, d: Any) -> int:
        try:
            if on_epoch and not failures:
                on_epoch(read(Epoch, e))
        except BaseException as failure:
            failures.append(failure)
        return int(lib.SHERD_EINTERRUPTED) if failures else 0

    @callback("void(void *, const sherd_train_update *)")
    def update(ctx: Any, u: Any) -> None:
        try:
            if on_update and not failures:
                on_update(read(Update, u))
        except BaseException as failure:
            failures.append(failure)

    def work(worker: Worker) -> Model:
        opt = new(
            "sherd_train_options",
            by=_BY[by],
            check=check,
            timeout_ms=milliseconds(timeout),
            resume=resume,
            nodes=len(cluster) if cluster else None,
            on_epoch=epoch,
            on_update=update if on_update else None,
            initial=first._model if first else None,
            checkpoints=None if checkpoints is None else path_of(checkpoints, "checkpoints"),
            products=how if by == "products" else None,
            **members,
        )
        worker.hooks(opt.hooks)
        hold(opt, worker, epoch, update, first)
        out = made("sherd_training")
        call("sherd_training_new", out, made_recipe._pointer, source, opt)
        try:
            call("sherd_training_run", out[0], cluster._nodes.pointer if cluster else ffi.NULL)
            model = _model_of(out[0], (source, opt))
        except BaseException:
            lib.sherd_training_free(out[0])
            raise
        return model

    try:
        if cluster is not None:
            return cluster._run(lambda: work(cluster._worker), progress, "train")
        return run_alone("train", work, progress)
    except Exception:
        if failures:
            raise failures[0] from None
        raise


def _initial(
    recipe: Recipe, initial: Union[Model, PathLike, Mapping[str, Any], None]
) -> Optional[Model]:
    """Returns the model that has the first parameters of a training."""
    if initial is None or isinstance(initial, Model):
        return initial
    out = made("sherd_model")
    if not isinstance(initial, Mapping):
        call("sherd_model_load_parameters", out, recipe._pointer, path_of(initial))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "initial.npz")
            arrays: Any = {k: np.asarray(v, np.float64) for k, v in initial.items()}
            np.savez(path, **arrays)
            call("sherd_model_load_parameters", out, recipe._pointer, path_of(path))
    model = Model.__new__(Model)
    model._take(out[0], None)
    return model


def _exposures(training: Any, nodes: int) -> list[Exposure]:
    found: list[Exposure] = []
    exposure = new("sherd_train_exposure")
    for operation in itertools.count():
        for node in range(nodes):
            if lib.sherd_training_exposure_at(training, operation, node, exposure, ffi.NULL):
                return found
            found.append(read(Exposure, exposure))
    return found


def _model_of(training: Any, borrowed: Any) -> Model:
    """Makes the model of a training, which it owns with the data that the training borrows."""
    model = Model.__new__(Model)
    report = new("sherd_train_report")
    call("sherd_training_report_get", training, report)
    model.report = read(TrainingReport, report)
    history: list[Epoch] = []
    while True:
        epoch = lib.sherd_training_epoch_at(training, len(history))
        if not epoch:
            break
        history.append(read(Epoch, epoch))
    model.history = history
    if model.report.by == "gradients":
        gradients = new("sherd_train_gradients")
        call("sherd_training_gradients_get", training, gradients)
        model.gradients = read(Gradients, gradients)
    if model.report.meta:
        model.exposures = _exposures(training, model.report.nodes)
    model._take(lib.sherd_training_model(training), training)
    model._borrowed = borrowed
    return model
