/*
 * Losses. Softmax and cross-entropy are one function, since their joint gradient is softmax - t
 * and their joint value log(sum exp(y - max)) + max - y_label: neither divides by, nor takes the
 * logarithm of, what may have become zero. exp and log are those with promised bits.
 */
#include "learn/loss.h"

#include "core/diag.h"
#include "matrix/funcs.h"

const char *sherd__loss_name(sherd__loss loss)
{
    switch (loss) {
    case SHERD__LOSS_SQUARED: return "squared";
    case SHERD__LOSS_CROSS_ENTROPY: return "cross-entropy";
    }
    return NULL;
}

static double squared(const double *y, size_t m, size_t width, sherd__targets t, double *dy)
{
    double sum = 0;
    for (size_t r = 0; r < m; r++) {
        double row = 0;
        for (size_t j = 0; j < width; j++) {
            double want = t.values != NULL ? t.values[r * width + j]
                                           : (t.labels[r] == j ? 1.0 : 0.0);
            double e = y[r * width + j] - want;
            row += e * e;
            dy[r * width + j] = e / (double)m;
        }
        sum += row;
    }
    return sum / (2.0 * (double)m);
}

static double cross_entropy(const double *y, size_t m, size_t width, const uint32_t *labels,
                            double *dy)
{
    double cost = 0;
    for (size_t r = 0; r < m; r++) {
        const double *from = y + r * width;
        double *to = dy + r * width, most = from[0], sum = 0, log_sum;
        for (size_t j = 1; j < width; j++) most = from[j] > most ? from[j] : most;
        double wanted = from[labels[r]] - most;
        for (size_t j = 0; j < width; j++) to[j] = from[j] - most;
        sherd__exp_f64(to, width, to);
        for (size_t j = 0; j < width; j++) sum += to[j];
        sherd__log_f64(&sum, 1, &log_sum);
        cost += log_sum - wanted;
        for (size_t j = 0; j < width; j++)
            to[j] = (to[j] / sum - (labels[r] == j ? 1.0 : 0.0)) / (double)m;
    }
    return cost / (double)m;
}

int sherd__loss_gradient(sherd__loss loss, const double *y, size_t m, size_t width,
                         sherd__targets t, double *cost, double *dy, sherd_diag *d)
{
    const char *name = sherd__loss_name(loss);
    if (name == NULL) return sherd__fail(d, SHERD_EINVAL, NULL, "%d is no loss", (int)loss);
    if ((t.values != NULL) == (t.labels != NULL))
        return sherd__fail(d, SHERD_EINVAL, NULL, "targets are either values or labels");
    if (loss == SHERD__LOSS_CROSS_ENTROPY && t.labels == NULL)
        return sherd__fail(d, SHERD_EINVAL, "use the squared loss for values",
                           "the cross-entropy loss takes labels, values given");
    for (size_t r = 0; t.labels != NULL && r < m; r++)
        if (t.labels[r] >= width)
            return sherd__fail(d, SHERD_EINVAL, "labels count from 0",
                               "example %zu of the batch has label %u, the network has %zu "
                               "outputs", r, (unsigned)t.labels[r], width);
    *cost = loss == SHERD__LOSS_SQUARED ? squared(y, m, width, t, dy)
                                        : cross_entropy(y, m, width, t.labels, dy);
    return SHERD_OK;
}

size_t sherd__labels_hit(const double *y, size_t m, size_t width, const uint32_t *labels)
{
    size_t hits = 0;
    for (size_t r = 0; r < m; r++) {
        const double *row = y + r * width;
        size_t best = 0;
        int sound = row[0] == row[0];
        for (size_t j = 1; j < width; j++) {
            sound &= row[j] == row[j];
            if (row[j] > row[best]) best = j;
        }
        hits += sound && best == labels[r];
    }
    return hits;
}
