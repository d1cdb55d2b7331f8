def kept_per_byte(config):
    """Eager's sixteen widths a block."""
    return 4 * (config.layers * 16 * config.width + config.vocab)
