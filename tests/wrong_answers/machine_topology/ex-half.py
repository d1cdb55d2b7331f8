def most_links(found, count):
    """As if links to cards outside the choice counted too."""
    cards = range(len(found.gpus))

    def links(card):
        peers = (found.link(card, peer) for peer in cards if peer != card)
        return sum(link.lanes or 1 for link in peers if link.kind == "NV")

    return sorted(sorted(cards, key=links, reverse=True)[:count])
