/*
 * The inner-product code (generalised Reed-Solomon; Mital et al., arXiv 2007.03972; Makkonen and
 * Hollanti, arXiv 2404.15080): A is cut by columns into M blocks and B by rows, so that A*B is the
 * sum of the M products of blocks. With T masks each and any N = M + 2T distinct points alpha_i
 * modulo p,
 *
 *     P(x) = prod (x - alpha_i) = sum p_s x^s,   w_i = 1 / P'(alpha_i)
 *     f = sum_{t<T} R_t x^t + sum_{j<M} A_j x^(T+j)
 *     g = sum_{t<T} S_t x^t + x^T sum_{j<M} B_j Q_j,   Q_j = sum_{l<M-j} p_(2T+j+1+l) x^l
 *
 * node i is given f(alpha_i) and w_i g(alpha_i), and the plain sum of all N answers is A*B. A node
 * computes 1/M of the product, less than under Lagrange's code (crypto/lagrange.h), but no answer
 * may be missing: after the loss of a node everything is coded again, with fresh masks.
 *
 * Why the sum is the product: L(h) = sum w_i h(alpha_i) is the coefficient of 1/x in h/P at
 * infinity, which is 0 if h has degree N-2 or less. Products with a mask on either side have degree
 * at most M+2T-2 = N-2. Q_j is the polynomial part of P/x^(2T+j+1), so L(x^(2T+i) Q_j) is 1 if i =
 * j, and otherwise 0.
 *
 * Any T shares of an operand are independent of it: the weights of masks in T shares form a
 * Vandermonde matrix, of which rows of B are multiplied by w_i, which is not 0.
 *
 * Points: alpha_i = i for i = 0..N-1. They are public.
 */
#ifndef CRYPTO_INNER_H
#define CRYPTO_INNER_H

#include "crypto/code.h"

/** Exists for N = M + 2T shares of both operands, and for no node that may be missing. */
extern const sherd__code sherd__code_inner;

#endif
