"""The derivative of every scalar operation, and reverse-mode differentiation of expression graphs with them.

A rule gets the gradient `g` of the result, the result `y` and the arguments, and returns one gradient an
argument, None where it is zero everywhere. Factors that can be infinite multiply through ``mul0``, so that a
branch that was not taken contributes exactly zero.
"""

import math
from collections.abc import Callable

from numbagrad.native.expr import Expr, constant, node, order
from numbagrad.native.scalar import mul0, where

Rule = Callable[..., tuple[Expr | None, ...]]


def _f(name: str, *args: Expr) -> Expr:
    return node(name, *args)


def _pow(g: Expr, y: Expr, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    # x**0 is constant, also at 0; 0**b is taken as constant in b.
    base = where(b == 0, 0, mul0(g, b * _f("pow", a, b - 1)))
    exponent = where(a == 0, 0, mul0(g, y * _f("log", a)))
    return base, exponent


RULES: dict[str, Rule] = {
    "add": lambda g, y, a, b: (g, g),
    "sub": lambda g, y, a, b: (g, -g),
    "mul": lambda g, y, a, b: (mul0(g, b), mul0(g, a)),
    "mul0": lambda g, y, a, b: (mul0(g, b), mul0(g, a)),
    "div": lambda g, y, a, b: (mul0(g, 1 / b), mul0(g, -(y / b))),
    "floordiv": lambda g, y, a, b: (None, None),
    "mod": lambda g, y, a, b: (g, mul0(g, -(a // b))),
    "pow": _pow,
    "neg": lambda g, y, x: (-g,),
    "abs": lambda g, y, x: (g * _f("sign", x),),
    "exp": lambda g, y, x: (mul0(g, y),),
    "expm1": lambda g, y, x: (mul0(g, y + 1),),
    "exp2": lambda g, y, x: (mul0(g, y * math.log(2)),),
    "log": lambda g, y, x: (mul0(g, 1 / x),),
    "log1p": lambda g, y, x: (mul0(g, 1 / (1 + x)),),
    "log2": lambda g, y, x: (mul0(g, (1 / math.log(2)) / x),),
    "log10": lambda g, y, x: (mul0(g, (1 / math.log(10)) / x),),
    "sqrt": lambda g, y, x: (mul0(g, 0.5 / y),),
    "rsqrt": lambda g, y, x: (mul0(g, -0.5 * (y / x)),),
    "cbrt": lambda g, y, x: (mul0(g, 1 / (3 * (y * y))),),
    "rcbrt": lambda g, y, x: (mul0(g, (-1 / 3) * (y / x)),),
    "sin": lambda g, y, x: (mul0(g, _f("cos", x)),),
    "cos": lambda g, y, x: (mul0(g, -_f("sin", x)),),
    "tan": lambda g, y, x: (mul0(g, 1 + y * y),),
    "arcsin": lambda g, y, x: (mul0(g, _f("rsqrt", 1 - x * x)),),
    "arccos": lambda g, y, x: (mul0(g, -_f("rsqrt", 1 - x * x)),),
    "arctan": lambda g, y, x: (mul0(g, 1 / (1 + x * x)),),
    "sinh": lambda g, y, x: (mul0(g, _f("cosh", x)),),
    "cosh": lambda g, y, x: (mul0(g, _f("sinh", x)),),
    "tanh": lambda g, y, x: (g * (1 - y * y),),
    "arcsinh": lambda g, y, x: (mul0(g, _f("rsqrt", x * x + 1)),),
    "arccosh": lambda g, y, x: (mul0(g, _f("rsqrt", x * x - 1)),),
    "arctanh": lambda g, y, x: (mul0(g, 1 / (1 - x * x)),),
    "sigmoid": lambda g, y, x: (g * (y * (1 - y)),),
    "softplus": lambda g, y, x: (g * _f("sigmoid", x),),
    "erf": lambda g, y, x: (g * ((2 / math.sqrt(math.pi)) * _f("exp", -(x * x))),),
    "erfc": lambda g, y, x: (g * ((-2 / math.sqrt(math.pi)) * _f("exp", -(x * x))),),
    "erfinv": lambda g, y, x: (mul0(g, (math.sqrt(math.pi) / 2) * _f("exp", y * y)),),
    "gamma": lambda g, y, x: (mul0(g, y * _f("digamma", x)),),
    "gammaln": lambda g, y, x: (mul0(g, _f("digamma", x)),),
    "digamma": lambda g, y, x: (mul0(g, _f("trigamma", x)),),
    "trigamma": lambda g, y, x: (mul0(g, _f("polygamma", constant(2), x)),),
    "polygamma": lambda g, y, n, x: (None, mul0(g, _f("polygamma", n + 1, x))),
    "where": lambda g, y, c, a, b: (None, where(c, g, 0), where(c, 0, g)),
}
for _name in "sign floor ceil trunc rint round logical_not".split():
    RULES[_name] = lambda g, y, x: (None,)
for _name in "lt le gt ge eq ne logical_and logical_or".split():
    RULES[_name] = lambda g, y, a, b: (None, None)


def gradients(root: Expr, head: Expr, wanted: list[Expr]) -> list[Expr | None]:
    """The gradient of `root` for each of `wanted`, given the gradient `head` of `root` itself.

    Raises
    ------
    NotImplementedError
        Where an operation below `root` has no derivative on file.
    """
    total: dict[int, Expr] = {id(root): head}
    for each in reversed(order(root)):
        g = total.get(id(each))
        if g is None or not each.args:
            continue
        rule = RULES.get(each.op)
        if rule is None:
            raise NotImplementedError(f"{each.op} has no derivative")
        for arg, part in zip(each.args, rule(g, each, *each.args), strict=True):
            if part is not None:
                total[id(arg)] = total[id(arg)] + part if id(arg) in total else part
    return [total.get(id(item)) for item in wanted]
