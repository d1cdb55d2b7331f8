def matmul_flops(config, tokens):
    """All products, as if backward were free."""
    block = 12 * config.width**2 + 2 * config.context * config.width
    return 2 * tokens * (config.layers * block + config.width * config.vocab)
