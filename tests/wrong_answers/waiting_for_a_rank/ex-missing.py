def missing(diaries):
    """Compares only as far as the shortest diary goes: later differences stay unseen."""
    shortest = min(len(entries) for entries in diaries)
    longest = max(len(entries) for entries in diaries)
    if any(entries[:shortest] != diaries[0][:shortest] for entries in diaries):
        return []
    return [rank for rank, entries in enumerate(diaries) if len(entries) < longest]
