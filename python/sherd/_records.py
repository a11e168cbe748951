"""Version, error codes and records of libsherd. Written by generate.py: do not edit."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from ._record import Record

Bytes = bytes  # some records have a member of that name

VERSION = "0.2.0"

ERRORS = {
    -1: ("ENOMEM", 1, "out of memory"),
    -2: ("EINVAL", 2, "invalid argument"),
    -3: ("ERANGE", 11, "value outside the range that can be computed exactly"),
    -4: ("EINTERNAL", 1, "internal error"),
    -5: ("EINTERRUPTED", 130, "interrupted"),
    -6: ("ETIMEOUT", 124, "timed out"),
    -7: ("EFEWNODES", 7, "too few live nodes or domains, or too small ones"),
    -8: ("EEXPOSURE", 10, "an exposure or reuse bound forbids it"),
    -9: ("EDIFFERS", 9, "differs from the centralized result"),
    -10: ("EUNSUPPORTED", 2, "not supported"),
    -11: ("EBUSY", 1, "busy, try again later"),
    -12: ("ESTOPPED", 13, "stopped, can be resumed"),
    -100: ("EFRAME", 5, "peer sent a malformed record"),
    -101: ("EAUTH", 6, "peer failed authentication"),
    -102: ("EWRONG", 8, "peer returned a result that fails verification"),
    -103: ("EREFUSED", 7, "peer refused"),
    -104: ("EVERSION", 14, "peer speaks another version"),
    -105: ("EUNASKED", 5, "peer sent something that was not asked for"),
    -106: ("ESILENT", 5, "peer was silent for too long"),
    -200: ("ECLOSED", 5, "connection closed"),
    -201: ("ECONNECT", 5, "cannot connect"),
    -202: ("EADDRINUSE", 5, "address already in use"),
    -203: ("ENET", 5, "network error"),
    -300: ("EDEVICE", 1, "device failed or failed its self-test"),
    -400: ("EOPEN", 4, "cannot open file"),
    -401: ("EIO", 4, "cannot read or write file"),
    -402: ("EFORMAT", 3, "malformed file"),
    -403: ("ESHAPE", 3, "shapes do not agree"),
    -404: ("EKEY", 6, "bad or unreadable key"),
    -405: ("ECHAIN", 12, "checkpoint chain broken"),
}


@dataclass(frozen=True)
class ReportFields(Record):
    """The figures of one call over a cluster.

    Attributes:
        nodes: nodes of the cluster
        planned: columns or rows of A that were planned for each node
        exposed_a: fraction of A's entries that each node received [fraction]
        exposed_b: of B's entries, given to each node [fraction]
        bytes_out: sent to each node [bytes]
        bytes_in: received from each node [bytes]
        states: of each node at the end of the call
        work_out: of blocks and tasks [bytes]
        work_in: of results [bytes]
        tasks: tasks that were answered and accepted
        tasks_repeated: tasks that were sent again
        fragments: pieces that a node multiplied
        panels: row panels
        tiles: column tiles
        rows_skipped: all-zero rows that were not sent
        encoding: how A was sent
        tasks_csr: tasks with a panel in CSR
        blocks: blocks that A was cut into
        threshold: answers that recover a product
        domains: domains of the nodes
        nodes_used: nodes that were up or were given work
        domains_used: domains with nodes that were up or were given work
        tasks_cancelled: answers that were no longer needed
        encodings: times that shares were made
        masks_left: rows of masks that are left
        nodes_lost: nodes that were lost
        nodes_banned: nodes that were banned
        banned: names of the nodes that were banned
        scale_a: exponent of A's fixed point
        scale_b: exponent of B's fixed point
        bits_a: width of A
        bits_b: width of B
        primes: number of primes
        check_error: probability that a wrong answer is accepted
        check_tolerant: the check catches gross errors only
        seed: the seed that was used, a secret
        seconds: duration of the call [s]
        pace_node: node that the others waited for, from 1; 0: none
        pace_seconds: time in which that node owed answers [s]
        pace_others: median of the other nodes' times [s]
        done: of the accepted tasks, that each node answered [fraction]
        prime_bits: bits of each prime; 0: there is none
        code: code of the shares
    """

    nodes: int
    planned: list[int]
    exposed_a: list[float]
    exposed_b: list[float]
    bytes_out: list[int]
    bytes_in: list[int]
    states: list[str]
    work_out: int
    work_in: int
    tasks: int
    tasks_repeated: int
    fragments: int
    panels: int
    tiles: int
    rows_skipped: int
    encoding: str
    tasks_csr: int
    blocks: int
    threshold: int
    domains: int
    nodes_used: int
    domains_used: int
    tasks_cancelled: int
    encodings: int
    masks_left: int
    nodes_lost: int
    nodes_banned: int
    banned: str
    scale_a: int
    scale_b: int
    bits_a: int
    bits_b: int
    primes: int
    check_error: float
    check_tolerant: bool
    seed: Bytes = field(repr=False)
    seconds: float
    pace_node: int
    pace_seconds: float
    pace_others: float
    done: list[float]
    prime_bits: int
    code: str


@dataclass(frozen=True)
class ReportNode(Record):
    """The part of one node in a call.

    Attributes:
        name: name
        address: host and port
        domain: domain
        key: fingerprint of the node's key
        pid: process, of a local node
        state: state at the end of the call
        blas_core: BLAS kernels that the node uses
        tasks: tasks that the node has answered so far
        planned: columns or rows of A that were planned for the node
        exposed_a: fraction of A's entries that the node received [fraction]
        exposed_b: of B's entries, given to the node [fraction]
        bytes_out: sent to the node [bytes]
        bytes_in: received from the node [bytes]
        done: of the accepted tasks, that the node answered [fraction]
    """

    name: str
    address: str
    domain: str
    key: str
    pid: int
    state: str
    blas_core: str
    tasks: int
    planned: int
    exposed_a: float
    exposed_b: float
    bytes_out: int
    bytes_in: int
    done: float


@dataclass(frozen=True)
class NodeInfo(Record):
    """What a cluster knows of one node.

    Attributes:
        name: name
        address: host and port
        domain: domain
        key: fingerprint of the node's key
        pid: process, of a local node
        state: present state
        blas_core: BLAS kernels that the node uses
        threads: threads that the node computes with
        memory: memory budget [bytes]
        gflops: rate in float64 [GFLOP/s]
        residue_gflops: rate for packed residues; 0: as in float64 [GFLOP/s]
        bytes_out: sent to the node [bytes]
        bytes_in: received from the node [bytes]
        work_out: sent to the node, blocks and tasks only [bytes]
        work_in: received from the node, results only [bytes]
        tasks: answered and accepted [tasks]
        devices: number of devices that it computes with [devices]
        weight: weight= of its line
        software: name and version
        backend: what it computes with
        latency: round-trip time of its connection [s]
        load_known: the node stated the next four
        memory_free: memory that nothing takes [bytes]
        uptime: time since it started [s]
        open_tasks: accepted and not answered, of all coordinators [tasks]
        sessions: coordinators that are connected, this one included
        error: why it is not up, as a code; 0: it is up
        why: why it is not up
        byte_gops: rate for residues of one byte; 0: unknown, or none [Gop/s]
    """

    name: str
    address: str
    domain: str
    key: str
    pid: int
    state: str
    blas_core: str
    threads: int
    memory: int
    gflops: float
    residue_gflops: float
    bytes_out: int
    bytes_in: int
    work_out: int
    work_in: int
    tasks: int
    devices: int
    weight: float
    software: str
    backend: str
    latency: float
    load_known: bool
    memory_free: int
    uptime: int
    open_tasks: int
    sessions: int
    error: int
    why: str
    byte_gops: float


@dataclass(frozen=True)
class Forecast(Record):
    """The predicted cost of one way to compute a product.

    Attributes:
        scheme: number of the scheme
        nodes: nodes
        primes: primes; 0: one product in float64
        blocks: blocks that A is cut into
        threshold: answers that decode
        slack: answers that may be missing
        panels: row panels
        tiles: column tiles
        tasks: tasks to compute
        encoding: how A is sent
        tasks_csr: tasks with a panel in CSR
        seconds_dense: parts that depend on the encoding, if A is sent dense [s]
        seconds_csr: parts that depend on the encoding, if A is sent in CSR [s]
        bytes_out: sent to the nodes [bytes]
        bytes_in: received from the nodes [bytes]
        at_most: the numbers of bytes are upper bounds
        flops: operations of all nodes; a multiply-add is two
        node_memory: held by one node at most [bytes]
        exposure_a: of A, to the most exposed node [fraction]
        exposure_b: of B, to the most exposed node [fraction]
        seconds: time until the result is in memory [s]
        seconds_nodes: the nodes' products alone [s]
        seconds_links: the links alone [s]
        seconds_here: this machine's own work alone [s]
        seconds_cores: all work on this machine's cores [s]
        bound: the part that limits the time
        own_seconds: the same product by dgemm here [s]
        rates_gflops: rate of the product on this machine [1e9/s]
        rates_node_gflops: rate of one node [1e9/s]
        rates_session: rate of one thread, in sessions [bytes/s]
        rates_link: rate of all links together [bytes/s]
        latency: until the answer of a small task is here [s]
        local: the nodes share this machine's cores
        code: code of the shares
        devices: nodes that compute on devices
        seconds_copies: copies to the devices of a node and from them alone [s]
        copy_rate: rate of these copies [bytes/s]
        arithmetic: kind of the nodes' products
        pace: node that all wait for
    """

    scheme: int
    nodes: int
    primes: int
    blocks: int
    threshold: int
    slack: int
    panels: int
    tiles: int
    tasks: int
    encoding: str
    tasks_csr: int
    seconds_dense: float
    seconds_csr: float
    bytes_out: int
    bytes_in: int
    at_most: bool
    flops: float
    node_memory: int
    exposure_a: float
    exposure_b: float
    seconds: float
    seconds_nodes: float
    seconds_links: float
    seconds_here: float
    seconds_cores: float
    bound: Optional[str]
    own_seconds: float
    rates_gflops: float
    rates_node_gflops: float
    rates_session: float
    rates_link: float
    latency: float
    local: bool
    code: str
    devices: int
    seconds_copies: float
    copy_rate: float
    arithmetic: Optional[str]
    pace: str


@dataclass(frozen=True)
class Check(Record):
    """A comparison with the result that this machine computes.

    Attributes:
        equal: every entry is right
        judged: how entries were judged
        entries: entries
        bit_equal: entries that are equal in every bit
        isclose: entries that are close by numpy.isclose
        mismatched: NaN or infinity on one side only
        max_abs: largest difference
        max_ulp: largest difference, in units in the last place
        beyond: entries beyond gamma_k |A||B|
        worst: largest difference, as a fraction of its bound
        row: row of the first wrong entry
        col: column of the first wrong entry
        seconds: time of computing and comparing [s]
        blas_calls: calls of BLAS
        unjudged: entries without a bound, which are not compared
        nan: entries that are NaN in both, which counts as equal
    """

    equal: bool
    judged: str
    entries: int
    bit_equal: int
    isclose: int
    mismatched: int
    max_abs: float
    max_ulp: int
    beyond: int
    worst: float
    row: int
    col: int
    seconds: float
    blas_calls: int
    unjudged: int
    nan: int


@dataclass(frozen=True)
class Distance(Record):
    """The distance of an exact product from the product in float64.

    Attributes:
        largest: largest difference from float64
        row: row of the entry with the largest difference
        col: column of the entry with the largest difference
        bound: largest difference that rounding allows
        relative: norm of all differences, divided by that of the float64 product
    """

    largest: float
    row: int
    col: int
    bound: float
    relative: float


@dataclass(frozen=True)
class Scheme(Record):
    """What a scheme hides, from whom, and which options it reads.

    Attributes:
        scheme: number of the scheme
        name: value of --scheme
        about: what each node learns of a product
        training: what each node learns of a network
        hides_a: A's entries are hidden
        hides_b: B's entries are hidden
        withstands: nodes that may collude
        hides_zeros: messages do not depend on entries
        exact_only: fixed point only
        residues: operands are sent as residues
        keeps: operand that can stay at the nodes
        takes: options that it reads, SHERD_TAKES_...
        public_b: number of the scheme for a B that need not be hidden
    """

    scheme: int
    name: Optional[str]
    about: Optional[str]
    training: Optional[str]
    hides_a: bool
    hides_b: bool
    withstands: str
    hides_zeros: bool
    exact_only: bool
    residues: bool
    keeps: str
    takes: int
    public_b: int


@dataclass(frozen=True)
class CertificateInfo(Record):
    """What a certificate states.

    Attributes:
        signer: fingerprint of the key that signed
        created: since 1970 [s]
        operation: what was computed
        inputs: number of inputs
        inputs_compared: the certificate has digests of the inputs
        mode: arithmetic
        bits_a: exact: width of A; 0: integers
        bits_b: exact: width of B; 0: integers
        primes: number of primes
        norms_leaked: primes or widths were fitted to the data
        scheme: scheme
        colluding: domains that learn nothing together
        group: columns that share a permutation; 0: all
        exposure: how columns were assigned to nodes
        shuffle_rows: rows of A were shuffled
        reused_metadata: the metadata served other operands before
        method: check of the nodes' answers
        freivalds_trials: trials for each answer
        freivalds_modulus_bits: width of the modulus; 0: none
        freivalds_error_log2: a wrong answer passes with probability 2^this
        sample_missed_ppm: chance in a million to miss one wrong entry
        equal: the coordinator's own comparison with the centralized result
        domains: domains of the nodes
        domains_simulated: one host ran all nodes
        nodes: number of nodes
        nodes_listed: nodes that are listed by name
        warnings: number of warnings
        sherd_version: version of sherd
        protocol_version: version of the protocol
        blas_version: version of OpenBLAS
    """

    signer: str
    created: int
    operation: str
    inputs: int
    inputs_compared: bool
    mode: str
    bits_a: int
    bits_b: int
    primes: int
    norms_leaked: bool
    scheme: str
    colluding: int
    group: int
    exposure: str
    shuffle_rows: bool
    reused_metadata: bool
    method: str
    freivalds_trials: int
    freivalds_modulus_bits: int
    freivalds_error_log2: int
    sample_missed_ppm: int
    equal: str
    domains: int
    domains_simulated: bool
    nodes: int
    nodes_listed: int
    warnings: int
    sherd_version: str
    protocol_version: str
    blas_version: str


@dataclass(frozen=True)
class CertificateMatrix(Record):
    """One matrix of a certificate.

    Attributes:
        dtype: numpy's name of the dtype
        rows: rows
        cols: columns
        has_digest: the digest is given
        sha256: digest of the matrix
    """

    dtype: str
    rows: int
    cols: int
    has_digest: bool
    sha256: Bytes = field(repr=False)


@dataclass(frozen=True)
class CertificateNode(Record):
    """One node of a certificate.

    Attributes:
        name: name
        domain: domain
        key: fingerprint of the node's key
    """

    name: str
    domain: str
    key: str


@dataclass(frozen=True)
class Masks(Record):
    """A file of one-time masks.

    Attributes:
        k: rows of B
        m: columns of B
        rows: rows of all A that the masks serve
        left: rows that are left
        bytes: size of the file [bytes]
        bits_a: width of A
        bits_b: width of B
        primes: number of primes
        b_sha256: digest of B
    """

    k: int
    m: int
    rows: int
    left: int
    bytes: int
    bits_a: int
    bits_b: int
    primes: int
    b_sha256: Bytes = field(repr=False)


@dataclass(frozen=True)
class OperationFields(Record):
    """One operation of a metadata file.

    Attributes:
        name: name of the operation
        kind: what it computes
        n: rows of A
        k: dot: columns of A
        m: columns of the result
        used: it has been used with operands
        operands: their digest
    """

    name: str
    kind: str
    n: int
    k: int
    m: int
    used: bool
    operands: Bytes = field(repr=False)


@dataclass(frozen=True)
class MetadataSettings(Record):
    """Settings that all operations of a metadata file share.

    Attributes:
        nodes: nodes that columns are assigned to
        group: columns that share a permutation; 0: all
        balanced: exposures are assigned in equal counts
        shuffle_rows: A's rows are shuffled too
    """

    nodes: int
    group: int
    balanced: bool
    shuffle_rows: bool


@dataclass(frozen=True)
class DataInfo(Record):
    """A data set.

    Attributes:
        examples: examples for training
        validation: examples for validation
        inputs: numbers of one example
        outputs: outputs of the recipe's network
        labels: targets are labels
        embedded: generated digits replace images
        text: source and size
    """

    examples: int
    validation: int
    inputs: int
    outputs: int
    labels: bool
    embedded: bool
    text: str


@dataclass(frozen=True)
class EpochFields(Record):
    """The figures of one report of a training.

    Attributes:
        epoch: epoch of the last step
        step: steps made
        loss: mean loss over the steps of the report
        accuracy: fraction of correct labels in these steps
        validation_loss: mean loss of the validation data after the last step
        validation_accuracy: fraction of correct labels of the validation data after the last step
        float64_accuracy: accuracy of the same training in float64
        float64_validation_accuracy: validation accuracy of the same training in float64
        rate: learning rate of the last step
        epsilon: privacy cost so far of one example
        delta: probability at which epsilon holds
        seconds: since the run began [s]
        examples_per_second: since the last report [1/s]
        nodes: nodes that are up
        bytes_out: sent to nodes so far [bytes]
        bytes_in: received from nodes so far [bytes]
    """

    epoch: int
    step: int
    loss: float
    accuracy: float
    validation_loss: float
    validation_accuracy: float
    float64_accuracy: float
    float64_validation_accuracy: float
    rate: float
    epsilon: float
    delta: float
    seconds: float
    examples_per_second: float
    nodes: int
    bytes_out: int
    bytes_in: int


@dataclass(frozen=True)
class TrainingReport(Record):
    """The figures of a whole training.

    Attributes:
        by: what steps are made of
        nodes: nodes; 0: trained here
        nodes_up: nodes that are up
        among: what carries sums among processes
        processes: processes that train as peers
        scheme: scheme of the products
        bits: width of fixed point; 0: floats [bits]
        parameters: numbers in the network
        batch: examples of a step
        step: steps made
        first_step: step that this run began at
        steps: steps of the whole training
        epochs: epochs of the whole training
        loss: mean loss of the present epoch so far, or of the last one
        accuracy: fraction of correct labels in the same epoch
        examples: examples of this run's steps
        seconds: duration so far [s]
        examples_per_second: over the duration [1/s]
        bytes_out: sent to nodes [bytes]
        bytes_in: received from nodes [bytes]
        epochs_checked: epochs after which all parameters were equal
        sees: which party sees which data
        meta: metadata file of the products
        meta_reused: it had served another training
        seed_known: the seed derives from a number
        seed_number: this number
        steps_per_epoch: steps of a pass over all examples
        steps_per_report: steps between two reports
        stopped_early: as many reports as `patience` had no lower validation loss
        best_step: step of the report with the lowest validation loss
        best_loss: validation loss of that report
        best_accuracy: validation accuracy of that report
    """

    by: Optional[str]
    nodes: int
    nodes_up: int
    among: Optional[str]
    processes: int
    scheme: Optional[str]
    bits: int
    parameters: int
    batch: int
    step: int
    first_step: int
    steps: int
    epochs: int
    loss: float
    accuracy: float
    examples: int
    seconds: float
    examples_per_second: float
    bytes_out: int
    bytes_in: int
    epochs_checked: int
    sees: Optional[str]
    meta: Optional[str]
    meta_reused: bool
    seed_known: bool
    seed_number: int
    steps_per_epoch: int
    steps_per_report: int
    stopped_early: bool
    best_step: int
    best_loss: float
    best_accuracy: float


@dataclass(frozen=True)
class Gradients(Record):
    """How the gradients of a training were computed.

    Attributes:
        shards: parts of a batch
        async_: each gradient is applied when it arrives
        in_process: threads of this process computed the gradients
        threads: number of these threads
        local_steps: steps of a shard between two averages
        updates: updates of the parameters
        parts: gradients that nodes or threads computed
        staleness_mean: updates that a part missed, on average
        staleness_most: updates that a part missed, at most
        dropped: parts of lost nodes that did not count
        rescaled: steps computed again with a coarser scale
        pace_node: node that takes longest for a shard; empty: none
        pace_times: times as long as the others (median)
    """

    shards: int
    async_: bool
    in_process: bool
    threads: int
    local_steps: int
    updates: int
    parts: int
    staleness_mean: float
    staleness_most: int
    dropped: int
    rescaled: int
    pace_node: str
    pace_times: float


@dataclass(frozen=True)
class Update(Record):
    """One update of the parameters, by gradients.

    Attributes:
        version: updates made before
        staleness: updates that the oldest part missed
        by: node or thread that computed that part
        parts: parts in the update
        dropped: parts that were lost
        examples: examples in the update
    """

    version: int
    staleness: int
    by: int
    parts: int
    dropped: int
    examples: int


@dataclass(frozen=True)
class Exposure(Record):
    """What one node was shown of the operands of one operation of a step.

    Attributes:
        operation: operation of the step
        kind: what it computes
        node: index of the node
        calls: times that nodes computed it
        exposed_a: fraction of A's entries that the node was given [fraction]
        exposed_b: fraction of B's entries [fraction]
    """

    operation: str
    kind: str
    node: int
    calls: int
    exposed_a: float
    exposed_b: float


@dataclass(frozen=True)
class Prediction(Record):
    """The figures of a prediction.

    Attributes:
        rows: rows of the input
        outputs: numbers of one output
        nodes: nodes; 0: computed here
        scheme: scheme, with nodes
        bits: width of fixed point; 0: floats [bits]
        seconds: duration [s]
        bytes_out: sent to nodes [bytes]
        bytes_in: received from nodes [bytes]
        checked: equal to the prediction here
        sees: what nodes see
        accuracy: fraction of correct labels
    """

    rows: int
    outputs: int
    nodes: int
    scheme: Optional[str]
    bits: int
    seconds: float
    bytes_out: int
    bytes_in: int
    checked: bool
    sees: Optional[str]
    accuracy: float


@dataclass(frozen=True)
class AuditInfo(Record):
    """What was audited, and the result.

    Attributes:
        subject: what was audited
        form: how values were sent
        rows: rows of A, if they are known
        cols: columns of A, if they are known
        nodes: nodes
        domains: domains
        domains_known: the record assigns nodes to domains
        cut: the record is incomplete
        domains_covered: domains with complete records
        reach: what findings of an incomplete record cover
        colluding: T, domains that may combine what they see
        public_rows: rows of public data
        truth: the operand was known for counting
        labels: labels were known
        family: probability of one false flag in the whole audit
        tests: findings with a p-value, without controls
        flagged: findings beyond chance, without controls
        left_out: number of things that this audit left out
    """

    subject: Optional[str]
    form: Optional[str]
    rows: int
    cols: int
    nodes: int
    domains: int
    domains_known: bool
    cut: bool
    domains_covered: int
    reach: Optional[str]
    colluding: int
    public_rows: int
    truth: bool
    labels: bool
    family: float
    tests: int
    flagged: int
    left_out: int


@dataclass(frozen=True)
class Finding(Record):
    """One attack on one subject by one node or coalition.

    Attributes:
        test: kind of attack
        statistic: meaning of the value
        subject: attacked data
        who: nodes or domains that attacked
        size: number of nodes or domains that attacked
        unit: node or domain
        value: value of the statistic
        chance: value expected by chance
        low: lower end of the value's confidence interval
        high: upper end of the value's confidence interval
        ln_p: ln of the p-value
        ln_threshold: ln of the bound for the p-value
        flagged: beyond chance
        control: expected to be flagged
        sentence: the finding in words
    """

    test: Optional[str]
    statistic: Optional[str]
    subject: str
    who: str
    size: int
    unit: Optional[str]
    value: float
    chance: float
    low: float
    high: float
    ln_p: float
    ln_threshold: float
    flagged: bool
    control: bool
    sentence: str


@dataclass(frozen=True)
class Control(Record):
    """A scheme that was broken on purpose, which an audit must flag.

    Attributes:
        name: what was broken on purpose
        who: members of the record's own coalition
        ln_p: ln of the smallest p-value
        advantage: advantage in a game
        flagged: the audit flagged it
    """

    name: Optional[str]
    who: Optional[str]
    ln_p: float
    advantage: float
    flagged: bool


@dataclass(frozen=True)
class NodeReport(Record):
    """The counters of a node.

    Attributes:
        blocks_in: blocks stored
        bytes_in: bytes of these blocks [bytes]
        bytes_out: bytes of results [bytes]
        sessions: connections of coordinators
        memory_budget: budget for blocks, results [bytes]
        memory_peak: most memory in use so far [bytes]
        blas_core: kernels that compute
        threads: compute threads
    """

    blocks_in: int
    bytes_in: int
    bytes_out: int
    sessions: int
    memory_budget: int
    memory_peak: int
    blas_core: str
    threads: int


@dataclass(frozen=True)
class Progress(Record):
    """How far a call is.

    Attributes:
        done: tasks, rows or steps that are done
        total: of how many
        bytes_out: sent to nodes [bytes]
        bytes_in: received from nodes [bytes]
        nodes_up: nodes that are up
        seconds: since the call began [s]
    """

    done: int
    total: int
    bytes_out: int
    bytes_in: int
    nodes_up: int
    seconds: float


ReportFields._units = {"exposed_a": "fraction", "exposed_b": "fraction", "bytes_out": "bytes", "bytes_in": "bytes", "work_out": "bytes", "work_in": "bytes", "seconds": "s", "pace_seconds": "s", "pace_others": "s", "done": "fraction"}
ReportFields._struct = "sherd_report"
ReportNode._units = {"exposed_a": "fraction", "exposed_b": "fraction", "bytes_out": "bytes", "bytes_in": "bytes", "done": "fraction"}
ReportNode._struct = "sherd_report_node"
NodeInfo._units = {"memory": "bytes", "gflops": "GFLOP/s", "residue_gflops": "GFLOP/s", "bytes_out": "bytes", "bytes_in": "bytes", "work_out": "bytes", "work_in": "bytes", "tasks": "tasks", "devices": "devices", "latency": "s", "memory_free": "bytes", "uptime": "s", "open_tasks": "tasks", "byte_gops": "Gop/s"}
NodeInfo._struct = "sherd_node_info"
Forecast._units = {"seconds_dense": "s", "seconds_csr": "s", "bytes_out": "bytes", "bytes_in": "bytes", "node_memory": "bytes", "exposure_a": "fraction", "exposure_b": "fraction", "seconds": "s", "seconds_nodes": "s", "seconds_links": "s", "seconds_here": "s", "seconds_cores": "s", "own_seconds": "s", "rates_gflops": "1e9/s", "rates_node_gflops": "1e9/s", "rates_session": "bytes/s", "rates_link": "bytes/s", "latency": "s", "seconds_copies": "s", "copy_rate": "bytes/s"}
Forecast._struct = "sherd_forecast"
Check._units = {"seconds": "s"}
Check._struct = "sherd_check"
Distance._units = {}
Distance._struct = "sherd_distance"
Scheme._units = {}
Scheme._struct = "sherd_scheme_info"
CertificateInfo._units = {"created": "s"}
CertificateInfo._struct = "sherd_certificate_info"
CertificateMatrix._units = {}
CertificateMatrix._struct = "sherd_certificate_matrix"
CertificateNode._units = {}
CertificateNode._struct = "sherd_certificate_node"
Masks._units = {"bytes": "bytes"}
Masks._struct = "sherd_masks_info"
OperationFields._units = {}
OperationFields._struct = "sherd_meta_operation"
MetadataSettings._units = {}
MetadataSettings._struct = "sherd_meta_settings"
DataInfo._units = {}
DataInfo._struct = "sherd_data_info"
EpochFields._units = {"seconds": "s", "examples_per_second": "1/s", "bytes_out": "bytes", "bytes_in": "bytes"}
EpochFields._struct = "sherd_epoch"
TrainingReport._units = {"bits": "bits", "seconds": "s", "examples_per_second": "1/s", "bytes_out": "bytes", "bytes_in": "bytes"}
TrainingReport._struct = "sherd_train_report"
Gradients._units = {}
Gradients._struct = "sherd_train_gradients"
Update._units = {}
Update._struct = "sherd_train_update"
Exposure._units = {"exposed_a": "fraction", "exposed_b": "fraction"}
Exposure._struct = "sherd_train_exposure"
Prediction._units = {"bits": "bits", "seconds": "s", "bytes_out": "bytes", "bytes_in": "bytes"}
Prediction._struct = "sherd_predict_report"
AuditInfo._units = {}
AuditInfo._struct = "sherd_audit_info"
Finding._units = {}
Finding._struct = "sherd_audit_finding"
Control._units = {}
Control._struct = "sherd_audit_control"
NodeReport._units = {"bytes_in": "bytes", "bytes_out": "bytes", "memory_budget": "bytes", "memory_peak": "bytes"}
NodeReport._struct = "sherd_node_report"
Progress._units = {"bytes_out": "bytes", "bytes_in": "bytes", "seconds": "s"}
Progress._struct = "sherd_progress"
