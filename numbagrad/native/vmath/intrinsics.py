"""What scalar code needs below Numba's own operations: fused multiply-add, bits, polynomials.

Each stands with a plain Python twin for ``NUMBA_DISABLE_JIT=1``. Bits are plain ints in the twins, so that integer
arithmetic on them is exact there and wraps only on the way back.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from numbagrad.native.compiler import intrinsic

if TYPE_CHECKING:
    from fractions import Fraction


def _rounded(value: "Fraction", dtype: type) -> Any:
    """`value`, not zero, rounded once to `dtype`."""
    from fractions import Fraction

    try:
        double = np.float64(float(value))
    except OverflowError:
        return dtype(math.copysign(math.inf, value))
    if dtype is np.float32 and Fraction(float(double)) != value:  # round to odd first, else it would round twice
        bits = int(double.view(np.int64))
        if bits % 2 == 0:
            away = abs(value) > abs(Fraction(float(double)))
            double = np.int64(bits + (1 if away else -1)).view(np.float64)
    with np.errstate(over="ignore"):
        return dtype(double)


def _fma_twin(a: Any, b: Any, c: Any) -> Any:
    from fractions import Fraction  # not at the top: it takes a tenth of our import, for twins alone

    dtype = np.float32 if isinstance(a, np.float32) else np.float64
    with np.errstate(all="ignore"):
        if not (np.isfinite(a) and np.isfinite(b)):
            return dtype(a * b + c)
        if not np.isfinite(c):
            return dtype(c)
        exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        return _rounded(exact, dtype) if exact else dtype(a * b + c)


@intrinsic(_fma_twin)
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` rounded once, whatever the CPU (slow where it has no such instruction)."""
    if a not in (types.float32, types.float64) or a != b or a != c:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return a(a, a, a), codegen


def _bits_twin(x: Any) -> int:
    return int(x.view(np.int32)) if isinstance(x, np.float32) else int(np.float64(x).view(np.int64))


@intrinsic(_bits_twin)
def bits(typingctx: Any, x: Any) -> Any:
    """The bits of a float32 as int32, of a float64 as int64."""
    integer: Any = {types.float32: types.int32, types.float64: types.int64}.get(x)
    if integer is None:
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(signature.return_type))

    return integer(x), codegen


def _low32_twin(i: Any) -> int:
    return ((int(i) + 2**31) & 0xFFFFFFFF) - 2**31


@intrinsic(_low32_twin)
def low32(typingctx: Any, i: Any) -> Any:
    """The low 32 bits of `i` as int32: keeps LLVM from widening float32 work to vectors of 64-bit integers."""
    if not isinstance(i, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.cast(builder, args[0], i, types.int32)

    return types.int32(i), codegen


def _float32_twin(i: Any) -> Any:
    return np.uint32(int(i) & 0xFFFFFFFF).view(np.float32)


@intrinsic(_float32_twin)
def float32_of(typingctx: Any, i: Any) -> Any:
    """The float32 whose bits are the low 32 of `i`."""
    if not isinstance(i, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(context.cast(builder, args[0], i, types.int32), ir.FloatType())

    return types.float32(i), codegen


def _float64_twin(i: Any) -> Any:
    return np.uint64(int(i) & 0xFFFFFFFFFFFFFFFF).view(np.float64)


@intrinsic(_float64_twin)
def float64_of(typingctx: Any, i: Any) -> Any:
    """The float64 whose bits are `i`."""
    if not isinstance(i, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(context.cast(builder, args[0], i, types.int64), ir.DoubleType())

    return types.float64(i), codegen


def _llvm_unary(name: str, twin: Callable[[Any], Any]) -> Any:
    """The intrinsic ``llvm.<name>`` of one float, vectorised by LLVM."""

    @intrinsic(twin)
    def call(typingctx: Any, x: Any) -> Any:
        if x not in (types.float32, types.float64):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.call(builder.module.declare_intrinsic(f"llvm.{name}", [args[0].type]), args)

        return x(x), codegen

    return call


nearest = _llvm_unary("rint", np.rint)
down = _llvm_unary("floor", np.floor)
up = _llvm_unary("ceil", np.ceil)
towards_zero = _llvm_unary("trunc", np.trunc)
magnitude = _llvm_unary("fabs", np.abs)
root = _llvm_unary("sqrt", np.sqrt)


def _llvm_binary(name: str, twin: Callable[[Any, Any], Any]) -> Any:
    """The intrinsic ``llvm.<name>`` of two floats of one dtype, vectorised by LLVM."""

    @intrinsic(twin)
    def call(typingctx: Any, x: Any, y: Any) -> Any:
        if x not in (types.float32, types.float64) or x != y:
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = args[0].type
            function = builder.module.declare_intrinsic(f"llvm.{name}", [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, args)

        return x(x, x), codegen

    return call


with_sign = _llvm_binary("copysign", np.copysign)
"""The magnitude of the first with the sign bit of the second."""

greater = _llvm_binary("maximum", np.maximum)
"""The greater of two; NaN if either is. A loop that reduces by it becomes one of vectors."""


def _call_libm(builder: Any, name: str, values: Sequence[Any]) -> Any:
    double = ir.DoubleType()
    form = ir.FunctionType(double, [double] * len(values))
    call = builder.call(cgutils.get_or_insert_function(builder.module, form, name), values)
    for attribute in (
        "nobuiltin",  # LLVM would take a call that it knows for llvm.<name>, and call it for every lane
        "nounwind",
        "willreturn",
        "memory(none)",
        f'"vector-function-abi-variant"="_ZGV_LLVM_M64{"v" * len(values)}_{name}({name})"',
    ):
        set.add(call.attributes, attribute)  # llvmlite's own add() knows fewer of them
    return call


def libm(name: str, twin: Callable[[Any], Any]) -> Any:
    """The C function `name` of one float64, for slow paths.

    A call, even in a branch that is hardly ever taken, keeps LLVM from vectorising the loop around it, unless a masked
    vector form is declared: then LLVM vectorises the rest and calls the scalar function lane by lane where the mask
    says so. The form declared here has 64 lanes, so that it is never chosen; it names the scalar function itself
    because it must name one that exists. Where an LLVM takes no notice, the loop is scalar and its results the same.
    """

    @intrinsic(twin)
    def call(typingctx: Any, x: Any) -> Any:
        if x != types.float64:
            return None
        return x(x), lambda context, builder, signature, args: _call_libm(builder, name, args)

    return call


def scipy_twin(name: str) -> Callable[[Any], Any]:
    """The function `name` of scipy.special, which takes long to import and is therefore imported when called."""

    def twin(x: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(x)

    return twin


def libm2(name: str, twin: Callable[[Any, Any], Any]) -> Any:
    """The C function `name` of two float64; see :func:`libm`."""

    @intrinsic(twin)
    def call(typingctx: Any, x: Any, y: Any) -> Any:
        if x != types.float64 or y != types.float64:
            return None
        return x(x, y), lambda context, builder, signature, args: _call_libm(builder, name, args)

    return call


def _chain(coefficients: Sequence[Any], x: Any, fma: Callable[..., Any]) -> Any:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = fma(value, x, coefficient)
    return value


def _polynomial(coefficients: Sequence[Any], x: Any, chains: int, fma: Any, multiply: Any) -> Any:
    if chains == 1:
        return _chain(coefficients, x, fma)
    square = multiply(x, x)
    return fma(_chain(coefficients[1::2], square, fma), x, _chain(coefficients[0::2], square, fma))


def polynomial(coefficients: Sequence[float], chains: int = 0) -> Any:
    """A function of one float: the polynomial with these coefficients, constant term first, in FMA.

    By Horner's rule in `chains` = 1 chain, or in 2 over the even and the odd powers: half as many dependent operations,
    one more in all. The default is 1 up to five coefficients. Measured in loops, this is as fast as or faster than
    Estrin's scheme. The coefficients are rounded to the dtype of the argument.
    """
    coefficients = tuple(float(coefficient) for coefficient in coefficients)
    chains = chains or (1 if len(coefficients) <= 5 else 2)

    def twin(x: Any) -> Any:
        dtype = np.float32 if isinstance(x, np.float32) else np.float64
        with np.errstate(all="ignore"):
            constants = [dtype(each) for each in coefficients]
            return _polynomial(constants, dtype(x), chains, _fma_twin, lambda a, b: a * b)

    @intrinsic(twin)
    def evaluate(typingctx: Any, x: Any) -> Any:
        if x not in (types.float32, types.float64):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            constants = [context.get_constant(x, each) for each in coefficients]
            return _polynomial(constants, args[0], chains, builder.fma, builder.fmul)

        return x(x), codegen

    return evaluate
