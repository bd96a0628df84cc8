"""Number patterns as automata.

libphonenumber describes the numbers of a region by regular expressions over digits. To find out which regions can still
own a number after its first digits, a pattern has to be followed digit by digit, which `re` cannot do. The patterns use
few constructs (digits, classes, groups, alternatives, counted repeats), so they are read into terms here and followed by
taking derivatives: what is left of a pattern once a digit has been read.
"""

from functools import lru_cache

NEVER = ("never",)
END = ("end",)
ANY_DIGIT = frozenset("0123456789")


def parse(pattern):
    """Reads a pattern; one that uses a construct not known here is refused."""
    term, rest = _alternatives(pattern)
    if rest:
        raise ValueError(f"cannot read {rest!r} in the pattern {pattern!r}")
    return term


def is_match(term):
    """Whether the digits read so far are a whole match."""
    return _is_nullable(term)


@lru_cache(maxsize=None)
def after(term, digit):
    """What is left of a term once the digit has been read."""
    kind = term[0]
    if kind == "digit":
        return END if digit in term[1] else NEVER
    if kind == "either":
        return either(after(part, digit) for part in term[1])
    if kind == "then":
        first, second = term[1], term[2]
        rest = then(after(first, digit), second)
        return either((rest, after(second, digit))) if _is_nullable(first) else rest
    return NEVER


def either(parts):
    """A term that matches what any of the parts matches."""
    flat = set()
    for part in parts:
        if part != NEVER:
            flat |= part[1] if part[0] == "either" else {part}
    if len(flat) > 1:
        return ("either", frozenset(flat))
    return flat.pop() if flat else NEVER


def then(first, second):
    """A term that matches the first and then the second."""
    if NEVER in (first, second):
        return NEVER
    if first == END:
        return second
    if second == END:
        return first
    if first[0] == "then":
        return ("then", first[1], then(first[2], second))
    return ("then", first, second)


@lru_cache(maxsize=None)
def _is_nullable(term):
    kind = term[0]
    if kind == "either":
        return any(_is_nullable(part) for part in term[1])
    if kind == "then":
        return _is_nullable(term[1]) and _is_nullable(term[2])
    return term == END


def _alternatives(text):
    parts = []
    while True:
        part, text = _sequence(text)
        parts.append(part)
        if not text.startswith("|"):
            return either(parts), text
        text = text[1:]


def _sequence(text):
    parts = []
    while text and text[0] not in "|)":
        part, text = _atom(text)
        least, most, text = _repeat(text)
        parts += [part] * least + [either((part, END))] * (most - least)
    term = END
    for part in reversed(parts):
        term = then(part, term)
    return term, text


def _atom(text):
    if text.startswith("(?:"):
        term, rest = _alternatives(text[3:])
        if not rest.startswith(")"):
            raise ValueError(f"a group is not closed: {text!r}")
        return term, rest[1:]
    if text.startswith("\\d"):
        return ("digit", ANY_DIGIT), text[2:]
    if text[0] == "[":
        inside, rest = text[1:].split("]", 1)
        return ("digit", _digit_class(inside)), rest
    if text[0] in ANY_DIGIT:
        return ("digit", frozenset(text[0])), text[1:]
    raise ValueError(f"a construct that is not known here: {text!r}")


def _digit_class(inside):
    digits = set()
    while inside:
        if inside[1:2] == "-":
            digits |= {str(digit) for digit in range(int(inside[0]), int(inside[2]) + 1)}
            inside = inside[3:]
        else:
            digits.add(str(int(inside[0])))
            inside = inside[1:]
    return frozenset(digits)


def _repeat(text):
    if text.startswith("?"):
        return 0, 1, text[1:]
    if text.startswith("{"):
        bounds, rest = text[1:].split("}", 1)
        least, _, most = bounds.partition(",")
        return int(least), int(most or least), rest
    return 1, 1, text
