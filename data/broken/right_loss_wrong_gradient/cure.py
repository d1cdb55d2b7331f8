import torch
from helpers.lessons.compile_backends import interpret, last_uses, training_backend

aten = torch.ops.aten
WRITING = {aten.tanh.default: aten.tanh_.default, aten.exp.default: aten.exp_.default}


def alone(value):
    """Is this memory under no other node of the graph?"""
    schemas = [getattr(node.target, "_schema", None) for node in (value, *value.users)]
    views = (any(r.alias_info for r in schema.returns) for schema in schemas if schema)
    return not any(views)


def reuse(module):
    """Let operators write into an operand whose memory nobody reads after them."""
    dying = last_uses(module.graph)
    for node in module.graph.nodes:
        if node.target in WRITING:
            operand = node.args[0]
            if operand in dying[node] and operand.op != "placeholder" and alone(operand):
                node.target = WRITING[node.target]
    return module


def energy(x, w):
    h = x @ w
    return h.flatten().sin().sum() + h.tanh().sum()


torch.manual_seed(0)
x, w = torch.randn(4, 6), torch.randn(6, 5, requires_grad=True)
saving = training_backend(lambda graph, example_inputs: interpret(reuse(graph)))
runs = []
for f in (energy, torch.compile(energy, backend=saving)):
    loss = f(x, w)
    runs.append((loss.item(), torch.autograd.grad(loss, w)[0].norm().item()))
    print("loss %.4f, gradient norm %.4f" % runs[-1])
