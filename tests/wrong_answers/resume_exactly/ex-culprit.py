def culprit(held_out_equal, batch_equal, losses_equal):
    """Looks at the losses alone, as if the first one told the model from the data."""
    if all(losses_equal):
        return {"average"}
    return [{"model", "random state"}, {"optimizer", "scaler"}, {"scheduler"}][
        losses_equal.index(False)
    ]
