"""Does `busbw` say what a link saw, for each collective?"""


def check(program_source: str) -> None:
    """Raise AssertionError unless busbw is exact for collectives that send what they must."""
    names = {"__name__": "program"}
    exec(compile(program_source, "program.py", "exec"), names)
    for p in (2, 4, 16):
        for collective, sent in (("all-reduce", 2), ("reduce-scatter", 1), ("all-gather", 1)):
            for wire in (25e6, 5e9):
                seconds = sent * (p - 1) / p * 1e8 / wire
                rate = names["busbw"](collective, 1e8, seconds, p)
                assert abs(rate / wire - 1) < 1e-9, f"{collective}, {p} ranks: {rate / wire:g} wires"
