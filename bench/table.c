/* The measurements of `sherd bench`: what each one is applied to, and its figures with their
 * targets. Series are those that its kind adds to. */
#include "bench/bench.h"

#define LOWER SHERD__LOWER
#define HIGHER SHERD__HIGHER
#define HERE SHERD__WAY_HERE
#define PRODUCTS SHERD__WAY_PRODUCTS
#define SERVER SHERD__WAY_SERVER
#define RING SHERD__WAY_RING
#define HALVING SHERD__WAY_HALVING

/* clang-format off */

#define PRODUCT(...) &(const sherd__product_spec){ __VA_ARGS__ }
#define MEMORY(...) &(const sherd__memory_spec){ __VA_ARGS__ }
#define KERNEL(...) &(const sherd__kernel_spec){ __VA_ARGS__ }
#define TRAINING(...) &(const sherd__training_spec){ __VA_ARGS__ }
/* A related number: its key, words, unit and ratio. */
#define B(name, what, unit, ...) { name, what, unit, { .num = __VA_ARGS__ } }
#define OF(...) { .num = __VA_ARGS__ }
#define MS(series) series, NULL, 1e3
#define US(series) series, NULL, 1e6
#define MB(series) series, NULL, 1e-6

/* A product over the nodes and a dgemm here, in turns. */
#define BY_DGEMM \
    B("seconds", "over the nodes", "s", "nodes"), B("local_seconds", "dgemm here", "s", "local")
/* Where the time of all cores went. */
#define BUSY \
    B("products_percent", "products", "%", "products", "cores", 100), \
    B("links_percent", "links", "%", "links", "cores", 100), \
    B("here_percent", "encoding, checks and decoding", "%", "here", "cores", 100), \
    B("waiting_percent", "waiting", "%", "waiting", "cores", 100)

#define CLEAR(name_, what_, scheme_, n, q, factor, ...) \
    { .name = name_, what_ " at " #n ", beside dgemm", &sherd__bench_product, \
      PRODUCT(.dim = n, q, scheme_, .local = true, __VA_ARGS__), 5, 0, { \
        { name_, what_ ", " #n " x " #n " x " #n ", 7 nodes", \
          what_ ", " #q " x " #q " x " #q " (quick), 7 nodes", \
          "x dgemm", LOWER, factor, OF("nodes", "local"), .medians = true, .beside = { \
            BY_DGEMM, BUSY, B("command_seconds", "whole command", "s", "command") } } } }

/* A product in shares; more: other figures of it. */
#define SHARE(name_, n, q, factor, slow, more) \
    { .name = name_, "a product in shares at " #n ", beside dgemm", &sherd__bench_product, \
      PRODUCT(.dim = n, q, SHERD_SHARE, .local = true), 5, 0, { \
        { name_, "share, " #n " x " #n " x " #n ", 7 nodes, 1 colluding", \
          "share, " #q " x " #q " x " #q " (quick), 7 nodes", \
          "x dgemm", LOWER, factor, OF("nodes", "local"), .medians = true, .beside = { \
            BY_DGEMM, BUSY, B("flops", "its products as dgemm", "x", "flops") } }, more }, slow }
#define SHARE_BYTES(name_, most) \
    { name_, "  its bytes over those of a number", NULL, "n^2", LOWER, most, \
      OF("bytes", "square"), .beside = { B("mb", "on the wire", "MB", MB("bytes")) } }

/* Points of the plot of docs/: one size with seven nodes, or one number of nodes. */
#define POINT(name_, figure_, what_, quick_, n, q, nodes_) \
    { .name = name_, "a product in shares: " what_, &sherd__bench_product, \
      PRODUCT(.dim = n, q, SHERD_SHARE, .nodes = nodes_, .local = true), 5, 0, { \
        { figure_, "share, " what_, "share, " quick_ " (quick)", \
          "x dgemm", LOWER, 0, OF("nodes", "local"), .medians = true, .beside = { \
            B("n", "n", "", "dim"), B("nodes", "nodes", "", "count"), BY_DGEMM, BUSY } } }, true }
#define SIZE(n, q) POINT("by-size", "by-size-" #n, "n = " #n, "n = " #q, n, q, 7)
#define NODES(count) \
    POINT("by-nodes", "by-nodes-" #count, #count " nodes", #count " nodes", 2048, 192, count)

#define FREIVALDS(name_, n, k, m, n_quick, k_quick, m_quick, percent) \
    { .name = "freivalds", "checks of answers, beside their products", &sherd__bench_freivalds, \
      KERNEL(n, k, m, n_quick, k_quick, m_quick, 65535), 5, 0, { \
        { name_, "Freivalds, two trials, " #n " x " #k " x " #m, \
          "Freivalds, two trials, " #n_quick " x " #k_quick " x " #m_quick " (quick)", \
          "% of product", LOWER, percent, OF("check", "product", 100), .beside = { \
            B("seconds", "check", "s", "check"), \
            B("product_seconds", "product, all cores, two primes", "s", "product") } } } }

#define MEMORY_OF(name_, group_, what_, quick_, ...) \
    { .name = "memory", "the coordinator's memory, " group_, &sherd__bench_memory, \
      MEMORY(.which = group_, { __VA_ARGS__ }), 3, 0, { \
        { name_, what_, quick_, "MB", LOWER, 256, OF(MB("beyond")), .beside = { \
            B("operands_mb", "operands and result", "MB", MB("operands")) } } } }

#define DISTURBED(name_, what_, series) \
    { name_, "share, 8 nodes, 1 spare: one " what_, NULL, "x undisturbed", LOWER, 1.3, \
      OF(series, "calm", .of_median = true), .beside = { \
        B("worst", "worst", "x", series, "calm", .worst = true), \
        B("undisturbed_seconds", "undisturbed", "s", "calm"), \
        B("undisturbed_worst", "its worst", "x", "calm", "calm", .worst = true) }, \
      .remark = "the fault comes after 20, 50 and 80 % of the undisturbed time, each once a run", \
      .remark_quick = "quick: no fault is injected, since the product ends too soon" }

#define FORECAST(name_, what_, quick_, ...) \
    { .name = "forecast", "forecasts of times, beside the times: " what_, &sherd__bench_product, \
      PRODUCT(__VA_ARGS__, .forecast = true), 3, 0, { \
        { name_, "forecast of " what_, "forecast of " quick_ " (quick)", \
          "% off", LOWER, 30, OF("off", NULL, 100), .beside = { \
            B("foretold_seconds", "forecast", "s", "foretold"), \
            B("seconds", "measured", "s", "nodes"), \
            B("ratio", "forecast / measured", "", "foretold", "nodes") } } } }

#define BY_PRODUCTS { \
    B("seconds", "over the nodes", "s", "nodes"), \
    B("local_seconds", "here in float64", "s", "here"), \
    B("up", "sent", "MB", "up"), B("down", "received", "MB", "down"), BUSY }

#define ALLREDUCE(name_, what_, series) \
    { name_, what_, NULL, "x server", LOWER, 1.3, OF(series, "server", .of_median = true), \
      .beside = { \
        B("round_ms", "a round", "ms", MS(series)), \
        B("server_ms", "by the server", "ms", MS("server")) } }

#define HIDDEN_128_128 \
    "input = 28 x 28 x 1\nlayer = dense 128\nlayer = relu\nlayer = dense 128\nlayer = relu\n" \
    "layer = dense 10\nloss = cross-entropy\nweights = normal 0.01\ndata = digits\n" \
    "examples = 1024\nbatch = 128\norder = given\nepochs = 1\nrate = 0.001\n"
#define HIDDEN_128 \
    "input = 28 x 28 x 1\nlayer = dense 128\nlayer = relu\nlayer = dense 10\n" \
    "loss = cross-entropy\ndata = digits\nexamples = 3200\ndivide_inputs = 256\nbatch = all\n" \
    "order = shuffled\nepochs = 1\nrate = 0.1\n"

const sherd__measurement sherd__measurements[] = {
    { .name = "meta", "expanded metadata, beside numpy", &sherd__bench_meta, NULL, 5, 0, {
        { "meta-expanded", "metadata of a step, expanded, one core", NULL,
          "ns/index", LOWER, 3.5, OF("ns"), .beside = {
            B("indices", "indices", "with inverses", "indices"),
            B("command_seconds", "whole command, file written and synced", "s", "command") } },
        { "meta-numpy", "  against numpy's shuffle-and-invert loop", NULL,
          "x", HIGHER, 100, OF("numpy", "ns"), .beside = {
            B("numpy_ns", "numpy's loop", "ns/index (sampled)", "numpy"),
            B("numpy_best_ns", "numpy inverting whole rows", "ns/index (sampled)",
              "numpy-best") } } } },
    { .name = "seed", "metadata in seed form", &sherd__bench_seed, NULL, 5, 0, {
        { "meta-seed-bytes", "metadata of a step, seed form", NULL,
          "bytes", LOWER, 2047, .of = OF("bytes") },
        { "meta-seed-time", "  built and written to memory", NULL,
          "ms", LOWER, 1, OF(MS("seconds")), .beside = {
            B("command_ms", "whole command, file synced", "ms", MS("command")) } } } },
    { .name = "group1", "--group 1 on the layer, beside numpy", &sherd__bench_product,
      PRODUCT(.scheme = SHERD_PERMUTE, .group = 1, .numpy = true, .command = true), 3, 0, {
        { "group1-rate", "--group 1, layer 1 of MNIST, 7 nodes", NULL,
          "fragments/s", HIGHER, 900000, OF("rate"), .data = true, .beside = {
            B("fragments", "fragments", "", "fragments"),
            B("seconds", "product", "s", "nodes"),
            B("command_seconds", "whole command", "s", "command") } },
        { "group1-numpy", "  against numpy's loop over fragments", NULL,
          "x", HIGHER, 8, OF("rate", "numpy"), .beside = {
            B("numpy_rate", "numpy's loop", "fragments/s (sampled)", "numpy"),
            B("numpy_hoisted_rate", "with shuffled rows kept", "fragments/s (sampled)",
              "hoisted") } } } },
    CLEAR("all-4096", "--group all", SHERD_PERMUTE, 4096, 256, 2.2, .command = true),
    CLEAR("all-8192", "--group all", SHERD_PERMUTE, 8192, 384, 1.9, .command = true),
    CLEAR("plain-4096", "plain", SHERD_PLAIN, 4096, 256, 2.2, .command = false),
    { .name = "start", "the start of local nodes", &sherd__bench_start, NULL, 5, 0, {
        { "start", "63 local nodes started and connected", "3 local nodes (quick)",
          "s", LOWER, 1, OF("start"), .beside = {
            B("node_ms", "processor time of a node", "ms", MS("each")),
            B("close_seconds", "closed", "s", "close") } } } },
    { .name = "connection", "one connection", &sherd__bench_connection, NULL, 5, 0, {
        { "connection", "one connection into a block store, 64 MB blocks", NULL,
          "GB/s", HIGHER, 1.5, OF("rate", NULL, 1e-9), .beside = {
            B("block_mb", "blocks of", "MB", MB("bytes")),
            B("blocks", "in each run", "blocks", "blocks") } } } },
    { .name = "tasks", "small products", &sherd__bench_tasks, NULL, 5, 0, {
        { "tasks-rate", "64 x 64 products, B resident, one node", NULL,
          "tasks/s", HIGHER, 20000, OF("rate"), .beside = { B("depth", "depth", "", "depth") } },
        { "tasks-round-trip", "  round trip, one at a time (median of each run)", NULL,
          "us", LOWER, 200, OF(US("trip")), .beside = {
            B("resident_us", "a call of sherd_resident_multiply with 64 rows", "us",
              US("resident")) } } } },
    MEMORY_OF("memory-1", "1", "peak memory beyond operands, result: --group 1", NULL,
              .scheme = SHERD_PERMUTE, .group = 1),
    MEMORY_OF("memory-all", "all", "  --group all, 4096 x 4096 x 4096",
              "  --group all, 256 x 256 x 256 (quick)", .dim = 4096, 256, SHERD_PERMUTE),
    MEMORY_OF("memory-share", "share", "  share, 4096 x 4096 x 4096",
              "  share, 256 x 256 x 256 (quick)", .dim = 4096, 256, SHERD_SHARE),
    { .name = "modular", "a product modulo a prime, beside dgemm", &sherd__bench_modular,
      KERNEL(2048, 2048, 2048, 256, 256, 256, 2965818), 5, 0, {
        { "modular", "product mod p, 2048 x 2048 x 2048, one core",
          "product mod p, 256 x 256 x 256 (quick), one core",
          "% of dgemm", HIGHER, 95, OF("dgemm", "modular", 100), .beside = {
            B("dgemm_seconds", "dgemm", "s", "dgemm") } } } },
    { .name = "bytes", "a product modulo a byte prime, beside dgemm", &sherd__bench_bytes,
      KERNEL(2048, 2048, 2048, 256, 256, 256, 125), 5, 0, {
        { "bytes", "product mod a byte prime, 2048 x 2048 x 2048, one core",
          "product mod a byte prime, 256 x 256 x 256 (quick), one core",
          "x dgemm", HIGHER, 28, OF("dgemm", "bytes"), .beside = {
            B("gterms_per_second", "its terms", "G/s", "rate", NULL, 1e-9),
            B("laid_gterms_per_second", "with operands laid out before", "G/s", "laid", NULL,
              1e-9) } } } },
    { .name = "bytes", "all shares of an operand modulo byte primes", &sherd__bench_bytes_encode,
      KERNEL(.n = 2048, .n_quick = 512, .most = 131071), 5, 0, {
        { "bytes-encode", "  encode 2048 x 2048, N=7 K=3 T=1, six primes, one core",
          "  encode 512 x 512 (quick), N=7 K=3 T=1, six primes, one core",
          "ns/element", LOWER, 2, OF("encode", NULL, 1e9), .beside = {
            B("reduce_ns", "residues", "ns", "reduce", NULL, 1e9),
            B("draw_ns", "masks", "ns", "draw", NULL, 1e9),
            B("combine_ns", "shares", "ns", "combine", NULL, 1e9) } } } },
    { .name = "encode", "all shares of an operand, beside memcpy", &sherd__bench_encode,
      KERNEL(.n = 4096, .n_quick = 512, .most = 1000000), 5, 0, {
        { "encode", "encode 4096 x 4096, N=7 K=3 T=1, all cores",
          "encode 512 x 512 (quick), N=7 K=3 T=1, all cores",
          "% of memcpy", HIGHER, 40, OF("encode", "memcpy", 100), .beside = {
            B("gb_per_second", "encoding", "GB/s", "encode", NULL, 1e-9),
            B("memcpy_gb_per_second", "memcpy", "GB/s, read and written",
              "memcpy", NULL, 1e-9) } },
        { "encode-element", "  of one core, an element of A, two 23-bit primes", NULL,
          "ns", LOWER, 3, OF("element", NULL, 1e9) } } },
    FREIVALDS("freivalds-4096", 4096, 4096, 4096, 256, 256, 256, 2),
    FREIVALDS("freivalds-layer", 60000, 784, 128, 600, 784, 128, 12),
    SHARE("share-2048", 2048, 192, 2.4, false, { 0 }),
    SHARE("share-4096", 4096, 320, 1.6, false, SHARE_BYTES("share-4096-bytes", 48)),
    SHARE("share-8192", 8192, 384, 1.1, true, { 0 }),
    { .name = "share-spare", "a product in shares with a spare node, beside dgemm",
      &sherd__bench_product,
      PRODUCT(.dim = 4096, 320, SHERD_SHARE, .spare = 1, .nodes = 8, .local = true), 5, 0,
      {
        { "share-spare", "share --spare 1, 4096 x 4096 x 4096, 8 nodes",
          "share --spare 1, 320 x 320 x 320 (quick), 8 nodes",
          "x dgemm", LOWER, 2.2, OF("nodes", "local"), .medians = true, .beside = {
            BY_DGEMM, BUSY } } } },
    SIZE(512, 96), SIZE(1024, 128), SIZE(2048, 192), SIZE(4096, 320), SIZE(8192, 384),
    NODES(3), NODES(4), NODES(5), NODES(7), NODES(10), NODES(16), NODES(24), NODES(32),
    { .name = "resident", "products with an operand that stays in shares", &sherd__bench_product,
      PRODUCT(.scheme = SHERD_SHARE, .bits = 9, .bits_b = 17, .stays = true, .local = true), 5, 0, {
        { "resident", "share, images resident, 60000x784x128, 7 nodes", NULL,
          "x dgemm", LOWER, 1.6, OF("nodes", "local"), .medians = true, .beside = {
            BY_DGEMM, BUSY, B("first_seconds", "the first, which sends images", "s", "first") } },
        { "resident-up", "  sent for each", NULL, "MB", LOWER, 6, .of = OF("up") },
        { "resident-down", "  and received", NULL, "MB", LOWER, 110, .of = OF("down") } } },
    { .name = "disturbed", "products in shares while a node dies, stops or lies",
      &sherd__bench_disturbed,
      PRODUCT(.dim = 3072, 256, SHERD_SHARE, .spare = 1), 3, 1, {
        DISTURBED("disturbed-killed", "is killed", "killed"),
        DISTURBED("disturbed-stopped", "stops", "stopped"),
        DISTURBED("disturbed-lying", "lies", "lying") } },
    FORECAST("forecast-share-2048", "share, 2048 cubed", "share, 192 cubed",
             .dim = 2048, 192, SHERD_SHARE),
    FORECAST("forecast-share-4096", "share, 4096 cubed", "share, 320 cubed",
             .dim = 4096, 320, SHERD_SHARE),
    FORECAST("forecast-share-layer", "share, layer 1 of MNIST", "share, layer 1",
             .scheme = SHERD_SHARE, .bits = 9, .bits_b = 17),
    FORECAST("forecast-all-4096", "--group all, 4096 cubed", "--group all, 256 cubed",
             .dim = 4096, 256, SHERD_PERMUTE),
    FORECAST("forecast-group1", "--group 1, layer 1 of MNIST", "--group 1, layer 1",
             .scheme = SHERD_PERMUTE, .group = 1),
    FORECAST("forecast-plain-4096", "plain, 4096 cubed", "plain, 256 cubed",
             .dim = 4096, 256, SHERD_PLAIN),
    { .name = "train-deep", "batches of a deep network here, beside numpy", &sherd__bench_ways,
      TRAINING("deep", 2000, 200, 25, 2, { HERE }, .script = sherd__bench_deep_py), 5, 0, {
        { "train-deep-f64", "deep, a batch of 100 here, f64, beside numpy's", NULL,
          "x numpy", LOWER, 0.7, OF("here", "numpy", 1e3), .medians = true, .beside = {
            B("here_ms", "here", "ms", MS("here")),
            B("numpy_ms", "numpy in f64", "ms", "numpy") } } } },
    { .name = "train-deep", "batches of a deep network here, in f32, beside numpy",
      &sherd__bench_ways,
      TRAINING("deep", 2000, 200, 25, 2, { HERE }, .f32 = true, .script = sherd__bench_deep_py),
      5, 0, {
        { "train-deep-f32", "deep, a batch of 100 here, f32, beside numpy's f64", NULL,
          "x numpy", LOWER, 0.4, OF("here", "numpy", 1e3), .medians = true, .beside = {
            B("here_ms", "here", "ms", MS("here")),
            B("numpy_ms", "numpy in f64", "ms", "numpy"),
            B("numpy_f32_ms", "numpy in f32", "ms", "numpy-f32") } } } },
    { .name = "train-mnist", "an epoch of mnist here, beside numpy", &sherd__bench_ways,
      TRAINING("mnist", 60000, 600, 3, 1, { HERE }, .script = sherd__bench_mnist_epoch_py), 5, 0, {
        { "train-mnist", "mnist, an epoch of one batch here, f64, beside numpy", NULL,
          "x numpy", LOWER, 0.6, OF("here", "numpy", 1e3), .medians = true, .beside = {
            B("here_ms", "here", "ms", MS("here")),
            B("numpy_ms", "numpy in f64", "ms", "numpy") } } } },
    { .name = "train-epoch", "an epoch by products in shares, beside one here",
      &sherd__bench_ways,
      TRAINING("mnist", 60000, 600, 1, 1, { HERE, PRODUCTS }, .nodes = SHERD__BENCH_NODES), 5, 0, {
        { "train-epoch", "mnist by products, share, 7 nodes, an epoch", NULL,
          "x here", LOWER, 10, OF("nodes", "here"), .medians = true, .beside = BY_PRODUCTS } } },
    { .name = "train-batch", "a batch by products in shares", &sherd__bench_ways,
      TRAINING(HIDDEN_128_128, 1024, 1024, 1, 1, { HERE, PRODUCTS }, .nodes = 3), 30, 0, {
        { "train-batch", "784-128-128-10 by products, share, 3 nodes, a batch of 128", NULL,
          "ms", LOWER, 15, OF(MS("nodes")), .beside = BY_PRODUCTS } } },
    { .name = "gradients-spiral", "an iteration by gradients over two nodes, beside numpy",
      &sherd__bench_ways,
      TRAINING("spiral", 450, 450, 1000, 50, { SERVER }, 2, .script = sherd__bench_spiral_py),
      9, 0, {
        { "gradients-spiral", "spiral by gradients, 2 nodes, beside numpy here", NULL,
          "x numpy", LOWER, 1, OF("server", "numpy", 1e6), .medians = true, .beside = {
            B("here_us", "an iteration", "us", US("server")),
            B("compute_us", "of it nodes compute", "us", US("compute")),
            B("numpy_us", "numpy's", "us", "numpy") },
          .remark = "a shard at each node (train makes 8 unless it is given --shards); "
                    "numpy's took 259 us where the target was first measured" } } },
    { .name = "gradients-large", "a round of many parameters, beside its links alone",
      &sherd__bench_ways, TRAINING(.steps = 1, 1, { SERVER }, .nodes = 4), 7, 0, {
        { "gradients-large", "100 MB of parameters, 4 nodes, a round", NULL,
          "% of link", HIGHER, 60, OF("link", "server", 100), .beside = {
            B("round_ms", "a round", "ms", MS("server")),
            B("link_ms", "its bytes alone", "ms", MS("link")),
            B("mb", "on the wire", "MB", MB("bytes")),
            B("compute_ms", "a node's pass", "ms", MS("compute")) } } } },
    { .name = "gradients-circle",
      "a round of many parameters summed among nodes, beside the server",
      &sherd__bench_apart, TRAINING(.steps = 1, 1, { SERVER, RING, HALVING }, .nodes = 4), 5, 0, {
        ALLREDUCE("gradients-ring", "100 MB summed in a ring of 4 nodes, a round", "ring"),
        ALLREDUCE("gradients-halving", "100 MB summed by halving and doubling", "halving") } },
    { .name = "gradients-async", "asynchronous training with a slow node", &sherd__bench_slowed,
      TRAINING(HIDDEN_128, 3200, 200, 12, 3, .nodes = 2), 5, 0, {
        { "gradients-async", "asynchronous, one of 2 nodes 4 times slower", NULL,
          "x sync", HIGHER, 1, OF("async", "sync"), .beside = {
            B("sync", "synchronous", "examples/s", "sync"),
            B("async", "asynchronous", "examples/s", "async") } },
        { "gradients-async-loss", "  its time to the final loss of synchronous training", NULL,
          "x sync", LOWER, 1, OF("async-until", "sync-until"), .beside = {
            B("loss", "a loss of", "", "loss"),
            B("sync_seconds", "synchronous", "s", "sync-until"),
            B("async_seconds", "asynchronous", "s", "async-until") } } } },
};

/* clang-format on */

const size_t sherd__measurements_len = sizeof sherd__measurements / sizeof *sherd__measurements;
