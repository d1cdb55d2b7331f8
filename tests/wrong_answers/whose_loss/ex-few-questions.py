def questions(ranks):
    return [
        {rank for rank in range(ranks) if rank >> bit & 1}
        for bit in range((ranks - 1).bit_length())
    ]
