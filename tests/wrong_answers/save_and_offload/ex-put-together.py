import torch


def put_together_by_hand(flats, shapes):
    """As if the model, laid end to end, had been cut: one flat tensor after the other."""
    flat, whole, offset = torch.cat(flats), {}, 0
    for name, shape in shapes.items():
        whole[name] = flat[offset : offset + shape.numel()].view(shape)
        offset += shape.numel()
    return whole
