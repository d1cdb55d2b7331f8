def load_but(model, stored, new):
    """Drops the head from the file and lets strict=False do the rest."""
    kept = {name: weight for name, weight in stored.items() if not name.startswith(tuple(new))}
    getattr(model, "_orig_mod", model).load_state_dict(kept, strict=False)
