"""The same form in Triton: in its interpreter, in a process of its own. About 20 s.

On a GPU the same file runs natively, and the process of its own keeps the interpreter out.
"""

import os
import subprocess
import sys

import torch

PROGRAM = """
import torch
from torch.nn import functional as F
from helpers.lessons.fusing_backend import FusedBackend, Reference
from helpers.lessons.triton_kernels import TritonTarget

home = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
m, row = torch.randn(6, 10, device=home), torch.randn(10, device=home)
odd = m.clone()
odd[0, :4] = torch.tensor([float("nan"), float("inf"), -float("inf"), 1e-40])
half, cube = m.bfloat16(), torch.randn(3, 4, 5, device=home)


def run(function, inputs, backend):
    torch._dynamo.reset()
    inputs = [x.detach().requires_grad_() for x in inputs]
    y = torch.compile(function, backend=backend, fullgraph=True)(*inputs)
    torch.manual_seed(1)
    return [y.detach(), *torch.autograd.grad(y, inputs, torch.randn_like(y))]


CASES = {
    "arithmetic": (lambda x, y: (x * 2 + y) / (y - x).abs(), (m, row), 0),
    "views": (lambda x, y: torch.relu(x.t()[::2] - y), (m, m[0, :1]), 0),
    "odd": (lambda x: torch.maximum(x, x * 2) + torch.where(x > 1, x, 1 / x), (odd,), 0),
    "largest with NaN": (lambda x: x - x.amax(1, keepdim=True), (odd,), 1e-5),
    "bfloat16": (lambda x: (x + 1) * x, (half,), 0),
    "bfloat16 cast": (lambda x: (x.bfloat16() + 1).float() * x, (m,), 0),
    "softmax": (lambda x: F.softmax(x, -1), (m,), 1e-5),
    "softmax, middle": (lambda x: F.softmax(x, 1), (cube,), 1e-5),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (10,), w, b), (m, row, row + 1), 1e-4),
    "gelu": (lambda x: F.gelu(x.t()), (m,), 1e-5),
    "tanh": (lambda x: torch.tanh(x) * x.sigmoid(), (m,), 1e-5),
    "mean of all": (lambda x: (x - x.mean()).square().mean(), (cube,), 1e-5),
}
for name, (function, inputs, tolerance) in CASES.items():
    ours = run(function, inputs, FusedBackend(TritonTarget()))
    theirs = run(function, inputs, FusedBackend(Reference()))
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        # A gradient of something broadcast is a sum, in another order.
        allowed = max(tolerance, 1e-5 if k else 0)
        same = torch.allclose(a.float(), b.float(), allowed, allowed, equal_nan=True)
        assert same and a.dtype == b.dtype, (name, k, a, b)

target = TritonTarget()
x = torch.randn(2, (1 << 16) + 1, device=home)
[ours, _] = run(lambda x: x - x.sum(1, keepdim=True), [x], FusedBackend(target))
assert torch.allclose(ours, x - x.sum(1, keepdim=True), atol=1e-3) and target.too_long
print("right")
"""


def test_triton_equals_the_definition():
    given = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True)
    assert done.stdout == "right\n", done.stderr[-3000:]
