def all_reduce(tensors):
    """Sum tensors[rank] over the ranks of a ring, in place; each is a list of one number a rank."""
    p = len(tensors)
    for step in range(p - 1):  # a chunk grows at each rank it passes
        sent = [tensors[rank][(rank - step) % p] for rank in range(p)]
        for rank in range(p):
            tensors[(rank + 1) % p][(rank - step) % p] += sent[rank]
    for step in range(p - 1):  # the finished chunks go round
        sent = [tensors[rank][(rank + 1 + step) % p] for rank in range(p)]
        for rank in range(p):
            tensors[(rank + 1) % p][(rank + 1 + step) % p] = sent[rank]


for p in (1, 2, 4):
    tensors = [[10 * rank + chunk for chunk in range(p)] for rank in range(p)]
    goal = [sum(tensor[chunk] for tensor in tensors) for chunk in range(p)]
    all_reduce(tensors)
    print(f"{p} ranks: {sum(tensor == goal for tensor in tensors)} hold the sum")
