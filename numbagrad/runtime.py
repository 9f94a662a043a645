"""Which of MXNet's build options hold here."""

from typing import NamedTuple

_NAMES = (
    "CUDA CUDNN NCCL CUDA_RTC TENSORRT CPU_SSE CPU_SSE2 CPU_SSE3 CPU_SSE4_1 CPU_SSE4_2 CPU_SSE4A CPU_AVX CPU_AVX2 "
    "OPENMP SSE F16C JEMALLOC BLAS_OPEN BLAS_ATLAS BLAS_MKL BLAS_APPLE LAPACK MKLDNN OPENCV CAFFE "
    "PROFILER DIST_KVSTORE CXX14 INT64_TENSOR_SIZE SIGNAL_HANDLER DEBUG TVM_OP"
).split()
_ENABLED = frozenset({"BLAS_OPEN", "LAPACK"})
"""SciPy's libraries. Kernels are compiled for the CPU that they run on, so what it is was no choice of a build."""


class Feature(NamedTuple):
    """A build option of MXNet."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


class Features(dict[str, Feature]):
    """The build options of MXNet by name."""

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether an option, by its name in any case, holds; RuntimeError for a name that MXNet does not know."""
        name = feature_name.upper()
        if name not in self:
            raise RuntimeError(f"Feature '{name}' is unknown, known features are: {list(self.keys())}")
        return self[name].enabled


def feature_list() -> list[Feature]:
    """All build options of MXNet."""
    return [Feature(name, name in _ENABLED) for name in _NAMES]


__all__ = ["Feature", "Features", "feature_list"]
