import ctypes

import torch
from helpers.lessons.compiled_kernels import build_library

SOURCE = """
extern "C" void twice(const float* x, float* y, long n) {
  for (long i = 0; i < n; i++) y[i] = 2 * x[i];
}
"""
library, _ = build_library(SOURCE)


def twice(x):
    """2 x, for float32 tensors of any shape."""
    y = torch.zeros(x.shape)
    pointers = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())
    library.twice(*pointers, ctypes.c_long(x.numel()))
    return y


batch = torch.arange(6.0).reshape(2, 3)
for what, x in {"batch": batch, "transposed": batch.t(), "a slice": batch[:, ::2]}.items():
    print(f"{what:10} right: {torch.equal(twice(x), 2 * x)}")
