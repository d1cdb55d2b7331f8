def captures(values, place):
    """The rule for each place is right, and the limit is forgotten."""
    known, answer = set(), []
    for value in values:
        free = place == "argument" and len(known) > 1
        answer.append(not free and value not in known)
        known.add(value)
    return answer
