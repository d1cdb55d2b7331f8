def missing(diaries):
    """Whoever has the shortest diary, whether or not the ranks parted before."""
    longest = max(len(entries) for entries in diaries)
    return [rank for rank, entries in enumerate(diaries) if len(entries) < longest]
