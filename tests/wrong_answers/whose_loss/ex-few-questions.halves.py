def questions(ranks):
    digits = (ranks - 1).bit_length()
    return [set(range(1 << bit)) & set(range(ranks)) for bit in range(2 * digits)]
