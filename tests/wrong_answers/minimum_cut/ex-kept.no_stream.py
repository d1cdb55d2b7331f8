def kept_per_byte(config):
    """The results of the matrix products only, without the stream."""
    return 4 * (config.layers * (8 * config.width + config.heads) + config.vocab)
