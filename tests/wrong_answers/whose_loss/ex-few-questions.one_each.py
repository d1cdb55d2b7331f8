def questions(ranks):
    return [{rank} for rank in range(ranks)]
