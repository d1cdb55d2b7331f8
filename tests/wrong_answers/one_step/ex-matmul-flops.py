def matmul_flops(config, tokens):
    """The rule of thumb, 6 x parameters x tokens, without the products of attention."""
    parameters = config.layers * 12 * config.width**2 + config.width * config.vocab
    return 6 * parameters * tokens
