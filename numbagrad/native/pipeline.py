"""How Numba's compiler is run for our functions: each is optimised once and emitted once.

Numba optimises a function in three rounds, the first two for the sake of reference counts, of which kernels on
borrowed arrays have next to none. It emits the machine code of every function, also of those whose code other
functions copy and nobody ever calls. And with the many small objects that it makes, the collector of cycles takes a
seventh of the time.
"""

from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult
from numba.core.compiler_machinery import PassManager

from numbagrad.collector import held_back
from numbagrad.native import cython_blas


class Library(JITCodeLibrary):
    """The code of one function, optimised in one round."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _NoEngine:
    """Stands for the codegen of functions that have no machine code, and so no place for an environment."""

    @staticmethod
    def set_env(name: str, environment: Any) -> None:
        """Do nothing."""


class LinkedLibrary(JITCodeLibrary):
    """The code of a function that exists in its callers only; simplified, so that they have less to do."""

    @property
    def codegen(self) -> Any:
        """Where an environment would be entered."""
        return _NoEngine

    def finalize(self) -> None:
        """Take in what the function calls itself."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0, which stands for a function that is not there."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> Any:
        """The name and the intermediate code."""
        self._ensure_finalized()
        return self.name, self._get_module_for_linking().as_bitcode()

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> Any:
        library = cls(codegen, state[0])
        library._final_module = library._shared_module = llvm.parse_bitcode(state[1])
        library._finalized = True
        return library


class _Loading:
    """The target as :meth:`CompileResult._rebuild` needs it for a function that exists in its callers only."""

    def __init__(self, target: Any) -> None:
        self.typing_context = target.typing_context
        self.get_executable = target.get_executable
        self._codegen = target.codegen()

    def codegen(self) -> Any:
        """What makes a library of the code on disk."""
        return self

    def unserialize_library(self, state: Any) -> Any:
        """The library."""
        return LinkedLibrary._unserialize(self._codegen, state)


def rebuild_linked(target: Any, *parts: Any) -> Any:
    """What `CompileResult._reduce` took apart, for a function of :class:`LinkedPipeline`."""
    return CompileResult._rebuild(_Loading(target), *parts)._replace(target_context=target)


@cache
def _load_numba(typing_context: Any, target_context: Any) -> None:
    """Have Numba load what it knows of Python and NumPy, which it does before it first compiles."""
    with cython_blas.alone(), held_back():
        typing_context.refresh()
        target_context.refresh()


_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.RewriteSemanticConstants,
    untyped_passes.DeadBranchPrune,
    untyped_passes.GenericRewrites,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.DeadBranchPrune,
    untyped_passes.ReconstructSSA,
    untyped_passes.DeadBranchPrune,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.NoPythonSupportedFeatureValidation,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)
"""Numba's passes for nopython mode, in its order, without those for what our kernels do not write: closures,
comprehensions, array expressions, ``literal_unroll`` and functions inlined by Numba (LLVM inlines).
"""


class Pipeline(CompilerBase):
    """Fewer passes than Numba's, into our kind of library."""

    library_class: Any = Library

    def __init__(self, typing_context: Any, target_context: Any, *rest: Any) -> None:
        _load_numba(typing_context, target_context)
        super().__init__(typing_context, target_context, *rest)

    def define_pipelines(self) -> list[Any]:
        """The passes of nopython mode."""
        manager = PassManager("nopython")
        for each in _PASSES:
            manager.add_pass(each, each.__name__)
        manager.finalize()
        return [manager]

    def compile_extra(self, func: Any) -> Any:
        """Compile `func`."""
        with held_back():
            return super().compile_extra(func)

    def _compile_core(self) -> Any:
        self.state.library = self.library_class(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super()._compile_core()


class LinkedPipeline(Pipeline):
    """The same for a function that exists in its callers only."""

    library_class = LinkedLibrary
