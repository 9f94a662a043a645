"""One thread for everybody, unless the environment says otherwise; set before NumPy loads its BLAS."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
