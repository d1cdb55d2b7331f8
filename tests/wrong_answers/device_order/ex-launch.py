def launch(ring, hidden=()):
    """Where each card stands in the ring, instead of which card stands where; CUDA's own order."""
    left = [card for card in ring if card not in hidden]
    places = [str(left.index(card)) for card in sorted(left)]
    return {"CUDA_VISIBLE_DEVICES": ",".join(places)}
