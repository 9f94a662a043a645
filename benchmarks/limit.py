"""The limit: a whole training step fused by hand into one njit function.

What a compiler of training steps can hope for on this machine. Plain SGD is folded into the weight-gradient gemm
(alpha = -rate, beta = 1), so weight gradients never exist; bias and ReLU share a loop, and so do the ReLU mask and the
bias update; nothing is allocated; one call takes a table of addresses and a table of sizes. Adam is one loop over each
parameter.
"""

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import carray, from_dtype, njit, types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from benchmarks.workloads import LEARNING_RATE, WORKLOADS, data
from numbagrad.native import openblas

F, I = np.float32, np.int32  # noqa: E741 - numbers of one letter keep typed formulas readable
FLAGS = {"fastmath": {"contract", "reassoc", "nsz", "arcp"}, "error_model": "numpy", "nogil": True}
SGEMM = openblas.address("sgemm")  # NumPy's, whose integers have 64 bits; else SciPy's
SIZE = np.int64 if SGEMM else np.int32
llvm.add_symbol("benchmarks_sgemm", SGEMM or get_cython_function_address("scipy.linalg.cython_blas", "sgemm"))


def _pointer(dtype):
    @intrinsic
    def pointer(typing, address):
        signature = types.CPointer(dtype)(types.int64)
        return signature, lambda context, builder, signature, arguments: builder.inttoptr(
            arguments[0], context.get_value_type(signature.return_type)
        )

    return pointer


floats, integers = _pointer(types.float32), _pointer(types.int64)


@intrinsic
def _float_of_bits(typing, bits):
    return types.float32(types.int32), lambda context, builder, signature, arguments: builder.bitcast(
        arguments[0], ir.FloatType()
    )


@intrinsic
def _sgemm(typing, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    pointer, size, real, flag = types.CPointer(types.float32), from_dtype(SIZE), types.float32, types.boolean
    signature = types.void(flag, flag, size, size, size, real, pointer, size, pointer, size, real, pointer, size)

    def generate(context, builder, signature, arguments):
        ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = arguments
        letter = ir.IntType(8)

        def by_reference(value):
            return cgutils.alloca_once_value(builder, value)

        def transposed(flag):
            yes, no = ir.Constant(letter, ord("T")), ir.Constant(letter, ord("N"))
            return by_reference(builder.select(cgutils.is_not_null(builder, flag), yes, no))

        sizes = [by_reference(value) for value in (m, n, k)]
        operands = [a, by_reference(lda), b, by_reference(ldb), by_reference(beta), c, by_reference(ldc)]
        call = [transposed(ta), transposed(tb), *sizes, by_reference(alpha), *operands]
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in call])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "benchmarks_sgemm"), call)
        return context.get_dummy_value()

    return signature, generate


@njit(**FLAGS)
def gemm(ta, tb, m, n, k, alpha, a, b, beta, c):
    """C (m, n) = alpha op(A) op(B) + beta C, row-major, on addresses: to BLAS the transposed product."""
    lda, ldb = m if ta else k, k if tb else n
    _sgemm(
        tb, ta, SIZE(n), SIZE(m), SIZE(k), alpha, floats(b), SIZE(ldb), floats(a), SIZE(lda), beta, floats(c), SIZE(n)
    )


@njit(inline="always", **FLAGS)
def exp_of_negative(x):
    """exp(x) for x <= 0 without a branch, so that loops over it become vector code.

    x = n ln 2 + r with ln 2 split in two; degree-6 polynomial in r, our own minimax fit (0.05 ulp before rounding).
    """
    x = max(x, F(-87))
    n = np.floor(x * F(1.4426950408889634) + F(0.5))
    r = x - n * F(0.693359375) + n * F(2.12194440e-4)
    p = F(0.0013814539415761828)
    p = p * r + F(0.00836874544620514)
    p = p * r + F(0.04166838899254799)
    p = p * r + F(0.1666652113199234)
    p = p * r + F(0.4999999403953552)
    return (p * r * r + r + F(1)) * _float_of_bits((I(n) + I(127)) << I(23))


@njit(**FLAGS)
def bias_relu(h, b, rows, units):
    """H = max(H + b, 0)."""
    h, b = carray(floats(h), (rows, units)), carray(floats(b), (units,))
    for i in range(rows):
        for j in range(units):
            h[i, j] = max(h[i, j] + b[j], F(0))


@njit(**FLAGS)
def mask_and_update_bias(g, h, b, rows, units, rate):
    """G = G where H > 0 else 0; b -= rate * column sums of G."""
    g, h, b = carray(floats(g), (rows, units)), carray(floats(h), (rows, units)), carray(floats(b), (units,))
    for i in range(rows):
        for j in range(units):
            v = g[i, j] if h[i, j] > F(0) else F(0)
            g[i, j] = v
            b[j] -= rate * v


@njit(**FLAGS)
def update_bias(g, b, rows, units, rate):
    """Add -rate * (column sums of G) to b."""
    g, b = carray(floats(g), (rows, units)), carray(floats(b), (units,))
    for i in range(rows):
        for j in range(units):
            b[j] -= rate * g[i, j]


@njit(**FLAGS)
def softmax_cross_entropy(h, b, y, g, rows, units):
    """Mean loss of the logits H + b against classes y; its gradient into G."""
    h, b, g = carray(floats(h), (rows, units)), carray(floats(b), (units,)), carray(floats(g), (rows, units))
    y = carray(integers(y), (rows,))
    loss, share = F(0), F(1) / F(rows)
    for i in range(rows):
        top = F(-np.inf)
        for j in range(units):
            v = h[i, j] + b[j]
            h[i, j] = v
            top = max(top, v)
        total = F(0)
        for j in range(units):
            e = exp_of_negative(h[i, j] - top)
            g[i, j] = e
            total += e
        loss += np.log(total) - (h[i, y[i]] - top)
        scale = share / total
        for j in range(units):
            g[i, j] *= scale
        g[i, y[i]] -= share
    return loss * share


@njit(**FLAGS)
def sigmoid_cross_entropy(h, b, y, g, rows):
    """Mean loss of the single logits H + b against labels 0 or 1; its gradient into G."""
    h, b, g, y = (
        carray(floats(h), (rows,)),
        carray(floats(b), (1,)),
        carray(floats(g), (rows,)),
        carray(integers(y), (rows,)),
    )
    loss, share, shift = F(0), F(1) / F(rows), b[0]
    for i in range(rows):
        x, z = h[i] + shift, F(y[i])
        e = exp_of_negative(-abs(x))
        p = F(1) / (F(1) + e)
        g[i] = ((e * p if x < F(0) else p) - z) * share
        loss += max(x, F(0)) - x * z - np.log(p)
    return loss * share


@njit(**FLAGS)
def forward(table, sizes, binary):
    """The mean loss; its gradient by the logits into the last G.

    `table` holds x, then W, b, H, G of each layer, then y; `sizes` the batch and the widths.
    """
    rows, layers = sizes[0], sizes.size - 2
    below = table[0]
    for layer in range(layers):
        inputs, units = sizes[layer + 1], sizes[layer + 2]
        w, b, h = table[4 * layer + 1], table[4 * layer + 2], table[4 * layer + 3]
        gemm(False, True, rows, units, inputs, F(1), below, w, F(0), h)
        if layer < layers - 1:
            bias_relu(h, b, rows, units)
        below = h
    b, h, g, y = table[4 * layers - 2], table[4 * layers - 1], table[4 * layers], table[4 * layers + 1]
    units = sizes[layers + 1]
    if binary:
        return sigmoid_cross_entropy(h, b, y, g, rows)
    return softmax_cross_entropy(h, b, y, g, rows, units)


@njit(**FLAGS)
def step(table, sizes, rate, binary):
    """One step of plain SGD; for the table see :func:`forward`."""
    rows, layers = sizes[0], sizes.size - 2
    loss = forward(table, sizes, binary)
    update_bias(table[4 * layers], table[4 * layers - 2], rows, sizes[layers + 1], rate)
    for layer in range(layers - 1, -1, -1):
        inputs, units = sizes[layer + 1], sizes[layer + 2]
        w, g = table[4 * layer + 1], table[4 * layer + 4]
        if layer:
            b, below, back = table[4 * layer - 2], table[4 * layer - 1], table[4 * layer]
            gemm(False, False, rows, inputs, units, F(1), g, w, F(0), back)
            mask_and_update_bias(back, below, b, rows, inputs, rate)
        else:
            below = table[0]
        gemm(True, False, units, inputs, rows, -rate, g, below, F(1), w)
    return loss


@njit(**FLAGS)
def adam(p, g, m, v, size, rate):
    """One update by Adam; `rate` has the bias corrections in it."""
    p, g = carray(floats(p), (size,)), carray(floats(g), (size,))
    m, v = carray(floats(m), (size,)), carray(floats(v), (size,))
    for i in range(size):
        m[i] = F(0.9) * m[i] + F(0.1) * g[i]
        v[i] = F(0.999) * v[i] + F(0.001) * (g[i] * g[i])
        p[i] -= rate * m[i] / (np.sqrt(v[i]) + F(1e-8))


@njit(**FLAGS)
def adam_step(table, sizes, binary, states, t):
    """One step of Adam; `states` holds gradient, m and v of W and of b of each layer, `t` the steps made before.

    Bias gradients gather in the loop that masks, so weight and bias of a layer are updated as soon as they are known.
    """
    rows, layers = sizes[0], sizes.size - 2
    t[0] += 1
    rate = F(LEARNING_RATE * np.sqrt(1 - 0.999 ** t[0]) / (1 - 0.9 ** t[0]))
    loss = forward(table, sizes, binary)
    update_bias(table[4 * layers], states[6 * layers - 3], rows, sizes[layers + 1], F(-1))
    for layer in range(layers - 1, -1, -1):
        inputs, units = sizes[layer + 1], sizes[layer + 2]
        w, b, g = table[4 * layer + 1], table[4 * layer + 2], table[4 * layer + 4]
        of_w, of_b = states[6 * layer : 6 * layer + 3], states[6 * layer + 3 : 6 * layer + 6]
        below = table[4 * layer - 1] if layer else table[0]
        gemm(True, False, units, inputs, rows, F(1), g, below, F(0), of_w[0])
        if layer:
            back = table[4 * layer]
            gemm(False, False, rows, inputs, units, F(1), g, w, F(0), back)
            mask_and_update_bias(back, below, states[6 * layer - 3], rows, inputs, F(-1))
        adam(w, of_w[0], of_w[1], of_w[2], units * inputs, rate)
        adam(b, of_b[0], of_b[1], of_b[2], units, rate)
        carray(floats(of_b[0]), (units,))[:] = F(0)
    return loss


def build(name, optimizer="sgd"):
    """The step of workload `name` as a function without arguments that returns the loss."""
    workload = WORKLOADS[name]
    x, y, weights, biases = data(name)
    arrays = [x]
    for w, b in zip(weights, biases):
        h = np.zeros((workload.batch, b.size), F)
        arrays += [np.ascontiguousarray(w.T), b, h, np.zeros_like(h)]
    arrays.append(y)
    table = np.array([array.ctypes.data for array in arrays], np.int64)
    sizes = np.array([workload.batch, *workload.widths], np.int64)
    rate, binary = F(LEARNING_RATE), workload.loss == "bce"

    def run(_alive=arrays):
        return step(table, sizes, rate, binary)

    if optimizer == "sgd":
        return run
    parameters = [array for k in range(len(weights)) for array in arrays[4 * k + 1 : 4 * k + 3]]
    kept = [np.zeros_like(array) for array in parameters for _ in range(3)]
    states, t = np.array([array.ctypes.data for array in kept], np.int64), np.zeros(1)

    def run_adam(_alive=(arrays, kept)):
        return adam_step(table, sizes, binary, states, t)

    return run_adam
