"""The identifiers of operators: given once, kept for ever.

The registry only grows. A row is `id,country,name`; a new name of a known operator is a new row with the old ID, so the
last row of an ID is its present name, and the last row of a name is the operator that had it last.
"""


class Registry:
    """The registry's rows, oldest first."""

    def __init__(self, rows):
        self.rows = [(int(number), country, name) for number, country, name in rows]

    def assign(self, holdings, old_holdings):
        """Gives every operator an ID.

        `holdings` maps an operator (country, name) to what it holds now, its networks or else its prefixes;
        `old_holdings` maps an ID to what it held when the files were last written.
        """
        present = {number: (country, name) for number, country, name in self.rows}
        by_name = {(country, name): number for number, country, name in self.rows}
        ids = {name: number for number, name in present.items() if name in holdings and by_name[name] == number}
        for operator in sorted(holdings.keys() - ids.keys(), key=_order):
            taken = set(ids.values())
            number = by_name.get(operator)
            if number is None or number in taken:
                number = _former_id(operator, holdings[operator], old_holdings, present, taken)
            ids[operator] = number or self._next_id()
            self.rows.append((ids[operator], *operator))
        return ids

    def _next_id(self):
        return max((number for number, _, _ in self.rows), default=0) + 1


def _former_id(operator, held, old_holdings, present, taken):
    """The ID of a vanished operator of the same country that held most of this, when that was most of what it had."""
    overlaps = [
        (len(held & old), -number)
        for number, old in old_holdings.items()
        if number not in taken and present[number][0] == operator[0] and 2 * len(held & old) > len(old)
    ]
    return -max(overlaps)[1] if overlaps else None


def _order(operator):
    """By country, then name; those without a country last."""
    country, name = operator
    return not country, country, name
