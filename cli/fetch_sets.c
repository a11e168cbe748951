/*
 * The data sets of `sherd fetch`. The checksum identifies the published file, from any sender, so a
 * mirror needs no trust. Mirrors are tried in order.
 *
 * MNIST: LeCun, Cortes and Burges. Fashion-MNIST: Xiao, Rasul and Vollgraf, arXiv 1708.07747.
 */
#include "cli/fetch.h"

#define TRAIN_IMAGES "train-images-idx3-ubyte.gz"
#define TRAIN_LABELS "train-labels-idx1-ubyte.gz"
#define TEST_IMAGES "t10k-images-idx3-ubyte.gz"
#define TEST_LABELS "t10k-labels-idx1-ubyte.gz"

const sherd__fetch_set sherd__fetch_sets[] = {
    { .name = "mnist",
      .what = "MNIST, handwritten digits",
      .mirrors = { "https://ossci-datasets.s3.amazonaws.com/mnist/",
                   "https://storage.googleapis.com/cvdf-datasets/mnist/" },
      .files = { { TRAIN_IMAGES, 9912422,
                   "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609" },
                 { TRAIN_LABELS, 28881,
                   "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c" },
                 { TEST_IMAGES, 1648877,
                   "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6" },
                 { TEST_LABELS, 4542,
                   "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6" } } },
    { .name = "fashion-mnist",
      .what = "Fashion-MNIST, articles of clothing",
      .mirrors = { "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/"
                   "fashion/",
                   "https://storage.googleapis.com/tensorflow/tf-keras-datasets/" },
      .files = { { TRAIN_IMAGES, 26421880,
                   "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84" },
                 { TRAIN_LABELS, 29515,
                   "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845" },
                 { TEST_IMAGES, 4422102,
                   "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073" },
                 { TEST_LABELS, 5148,
                   "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5" } } },
    { .name = NULL },
};
