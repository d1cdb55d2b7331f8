def missing(diaries):
    """Everybody behind the longest: also ranks that wait themselves."""
    longest = max(len(entries) for entries in diaries)
    for number in range(longest):
        if len({entries[number] for entries in diaries if len(entries) > number}) > 1:
            return []
    return [rank for rank, entries in enumerate(diaries) if len(entries) < longest]
