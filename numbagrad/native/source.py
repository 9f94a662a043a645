"""Expression graphs printed as typed njit loops.

An input reaches the loop in one of these ways, a letter each; the string of letters is the *pattern*:

``s``  an array of the loop's full size          ``0``  an array of one element
``r``  one row, the same for every row           ``c``  one column, one element a row
``k``  a Python number, passed by value

Patterns without ``r`` and ``c`` make one flat loop over ``n``; the others make a loop over rows and columns. Where the
rows are those of several planes, there are four more:

``p``  one element a plane                       ``m``  one element a row, the same for every plane
``e``  one row a plane, the same for its rows    ``q``  one plane, the same for every plane

These make a loop over planes, rows of a plane and columns, where ``c`` still is one element a row of a plane. An
upper-case ``S`` is an input whose storage is also the output's (an update in place).
"""

from collections.abc import Sequence
from typing import Any

from numbagrad.native.cache import generated_module
from numbagrad.native.expr import BOOLEAN, Expr, order
from numbagrad.native.vmath import FUNCTIONS

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%"}
_COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_NATIVE = {"abs": "abs({})"}
_FLOAT_ONLY_IN_VMATH = frozenset({"floor", "ceil", "trunc", "rint", "round"})


def loops_of(pattern: str) -> int:
    """How many loops the pattern makes, which is the number of sizes that the function takes."""
    return 3 if set(pattern) & set("pmeq") else 2 if "r" in pattern or "c" in pattern else 1


def is_float(dtype: str) -> bool:
    """Whether the dtype named `dtype` is a floating-point one."""
    return dtype.startswith("float")


class _Printer:
    """Assigns every node of a graph to a local variable, one statement a node."""

    def __init__(self, dtype: str, inputs: dict[int, str]) -> None:
        self.dtype = dtype
        self.names: dict[int, str] = {}
        self.inputs = inputs
        self.used: set[str] = set()

    def literal(self, value: float | int) -> str:
        if is_float(self.dtype):
            text = repr(float(value))
            text = {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(text, text)
            return f"np.{self.dtype}({text})"
        return f"np.{'int64' if self.dtype == 'bool' else self.dtype}({int(value)})"

    def number(self, item: Expr) -> str:
        """The node as a number of the loop's dtype."""
        name = self.names[id(item)]
        if item.op in BOOLEAN:
            return f"({self.literal(1)} if {name} else {self.literal(0)})"
        return name

    def truth(self, item: Expr) -> str:
        name = self.names[id(item)]
        if item.op in BOOLEAN or self.dtype == "bool":
            return name
        return f"({name} != {self.literal(0)})"

    def call(self, name: str, arguments: list[str]) -> str:
        if name not in FUNCTIONS:
            raise KeyError(f"no scalar function {name}")
        full = f"{name}_{self.dtype}"
        self.used.add(full)
        return f"{full}({', '.join(arguments)})"

    def expression(self, item: Expr) -> str:
        op, args = item.op, item.args
        if op == "logical_not":
            return f"not {self.truth(args[0])}"
        if op in ("logical_and", "logical_or"):
            sign = "&" if op == "logical_and" else "|"
            return f"{self.truth(args[0])} {sign} {self.truth(args[1])}"
        if op == "where":
            return f"{self.number(args[1])} if {self.truth(args[0])} else {self.number(args[2])}"
        values = [self.number(arg) for arg in args]
        if op in _COMPARE:
            return f"{values[0]} {_COMPARE[op]} {values[1]}"
        if op == "neg":
            return f"-{values[0]}"
        if op == "mul0":
            return f"{values[0]} * {values[1]} if {values[0]} != {self.literal(0)} else {self.literal(0)}"
        if op == "sign" and not is_float(self.dtype):
            x, zero, one = values[0], self.literal(0), self.literal(1)
            minus = zero if self.dtype.startswith("u") else self.literal(-1)
            return f"{one} if {x} > {zero} else ({minus} if {x} < {zero} else {zero})"
        if op in _FLOAT_ONLY_IN_VMATH and not is_float(self.dtype):
            return values[0]
        if is_float(self.dtype) and op in ("mod", "floordiv", "pow", "polygamma"):
            return self.call(op, values)
        if op == "pow":
            return f"{values[0]} ** {values[1]}"
        if op in ("mod", "floordiv"):
            x, y = values
            return f"{x} {_INFIX[op]} {y} if {y} != {self.literal(0)} else {self.literal(0)}"
        if op in _INFIX:
            return f"{values[0]} {_INFIX[op]} {values[1]}"
        if op in _NATIVE:
            return _NATIVE[op].format(*values)
        return self.call(op, values)

    def body(self, roots: Sequence[Expr]) -> list[str]:
        lines: list[str] = []
        for each in order(*roots):
            if each.op == "input":
                self.names[id(each)] = self.inputs[each.value]  # type: ignore[index]
            elif each.op == "const":
                self.names[id(each)] = self.literal(each.value)  # type: ignore[arg-type]
            else:
                text = self.expression(each)
                # Numba widens small integers; a product of two int32 must wrap as an int32 array does.
                if not is_float(self.dtype) and each.op not in BOOLEAN and each.op != "where":
                    text = f"np.{'int64' if self.dtype == 'bool' else self.dtype}({text})"
                self.names[id(each)] = name = f"t{len(lines)}"
                lines.append(f"{name} = {text}")
        return lines


def loop_source(roots: Sequence[Expr], dtype: str, pattern: str, out_dtypes: Sequence[str]) -> str:
    """The source of a module whose function ``loop`` computes `roots` elementwise.

    Parameters
    ----------
    roots : sequence of Expr
        One expression an output; input i is ``pattern[i]``.
    dtype : str
        The dtype of the arithmetic, and of every array input.
    pattern : str
        One letter an input; see the module's docstring. Unused inputs are ``-`` and are not passed.
    out_dtypes : sequence of str
        The dtype of each output.

    Returns
    -------
    str
        ``loop(n, inputs..., outputs...)``, or ``loop(rows, columns, inputs..., outputs...)`` where the pattern has
        rows or columns, or ``loop(planes, rows, columns, inputs..., outputs...)``. Of an input ``S`` the storage is
        the first output, which is then not passed.
    """
    loops = loops_of(pattern)
    two = loops > 1
    in_place = "S" in pattern
    names, before, plane, row, load, locals_ = [], [], [], [], [], {}
    for i, kind in enumerate(pattern):
        if kind == "-":
            continue
        names.append(f"x{i}")
        locals_[i] = f"a{i}"
        if kind == "k":
            before.append(f"a{i} = np.{'int64' if dtype == 'bool' else dtype}(x{i})")
        elif kind == "0":
            before.append(f"a{i} = x{i}[0]")
        elif kind == "c":
            row.append(f"a{i} = x{i}[i]")
        elif kind == "m":
            row.append(f"a{i} = x{i}[row]")
        elif kind == "p":
            plane.append(f"a{i} = x{i}[plane]")
        elif kind == "r":
            load.append(f"a{i} = x{i}[j]")
        elif kind == "e":
            plane.append(f"r{i} = piece(x{i}, plane * columns, columns)")
            load.append(f"a{i} = r{i}[j]")
        elif kind == "q":
            row.append(f"r{i} = piece(x{i}, row * columns, columns)")
            load.append(f"a{i} = r{i}[j]")
        elif two:
            row.append(f"r{i} = piece(x{i}, i * columns, columns)")
            load.append(f"a{i} = r{i}[j]")
        else:
            load.append(f"a{i} = x{i}[i]")
    printer = _Printer(dtype, locals_)
    statements = printer.body(roots)
    stores = []
    for k, (root, out_dtype) in enumerate(zip(roots, out_dtypes, strict=True)):
        target = f"x{pattern.index('S')}" if in_place and k == 0 else f"o{k}"
        if target.startswith("o"):
            names.append(target)
        if two:
            row.append(f"q{k} = piece({target}, i * columns, columns)")
        value = printer.truth(root) if out_dtype == "bool" else printer.number(root)
        if out_dtype not in (dtype, "bool"):
            value = f"np.{out_dtype}({value})"
        stores.append(f"q{k}[j] = {value}" if two else f"{target}[i] = {value}")
    inner = load + statements + stores
    lines = ["import numpy as np", "", "from numbagrad.native.compiler import njit"]
    if two:
        lines.append("from numbagrad.native.memory import piece")
    if printer.used:
        lines.append(f"from numbagrad.native.vmath import {', '.join(sorted(printer.used))}")
    sizes = ("n", "rows, columns", "planes, rows, columns")[loops - 1]
    lines += ["", "", "@njit", f"def loop({sizes}, {', '.join(names)}):"]
    lines += [f"    {line}" for line in before]
    if loops == 1:
        lines += ["    for i in range(n):", *[f"        {line}" for line in inner]]
    else:
        indent = "    "
        if loops == 2:
            lines += ["    for i in range(rows):"]
        else:
            lines += ["    for plane in range(planes):", *[f"        {line}" for line in plane]]
            lines += ["        for row in range(rows):", "            i = plane * rows + row"]
            indent = "        "
        lines += [f"{indent}    {line}" for line in [*row, "for j in range(columns):"]]
        lines += [f"{indent}        {line}" for line in inner]
    return "\n".join([*lines, "    return 0", ""])


def compile_loop(stem: str, roots: Sequence[Expr], dtype: str, pattern: str, out_dtypes: Sequence[str]) -> Any:
    """The compiled loop of :func:`loop_source`, and the roles of its arguments (see ``kernels.kernel``)."""
    function = generated_module(stem, loop_source(roots, dtype, pattern, out_dtypes)).loop
    sizes = ["size"] * loops_of(pattern)
    kinds = [{"k": "scalar", "S": "inout"}.get(kind, "in") for kind in pattern if kind != "-"]
    outs = ["out"] * (len(roots) - ("S" in pattern))
    return function, tuple(sizes + kinds + outs)
