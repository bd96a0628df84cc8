"""What changed between two states of the files, for people to read."""

from . import tables

MOST_LINES = 40


def describe(old, new):
    """The lines that say what changed from one folder to the other; none when nothing did."""
    lines = []
    operators = _by_id(old), _by_id(new)
    lines += _section("operators", _changes(*operators, _operator), *operators)
    # Under their present names, so that a rename is one change and not one for each prefix.
    names = operators[0] | operators[1]
    networks = _by_key(old, tables.NETWORKS, 4, names), _by_key(new, tables.NETWORKS, 4, names)
    lines += _section("networks", _changes(*networks, _network), *networks)
    prefixes = _by_key(old, tables.PREFIXES, 1, names), _by_key(new, tables.PREFIXES, 1, names)
    lines += _section("prefixes", _changes(*prefixes, _prefix), *prefixes)
    areas = _by_key(old, tables.AREAS, 1, {}), _by_key(new, tables.AREAS, 1, {})
    lines += _section("areas", _changes(*areas, _prefix), *areas)
    for name in (tables.REGISTRY, tables.RATES):
        before, after = tables.read(old, name), tables.read(new, name)
        if before != after:
            lines.append(f"{name}: {len(set(after) - set(before))} rows added, {len(set(before) - set(after))} removed")
    return lines


def _by_id(folder):
    return {number: (country, name) for number, country, name in tables.read(folder, tables.OPERATORS)}


def _by_key(folder, name, key_columns, operators):
    """Rows by their key; where they end in a bare operator ID, with its name."""
    rows = {}
    for row in tables.read(folder, name):
        number = row[-1]
        rest = row[key_columns:]
        if number in operators:
            rest = (*rest[:-1], f"{number} {operators[number][1]}")
        rows[row[:key_columns]] = rest
    return rows


def _operator(number, row):
    return f"{number} {row[0] or '--'} {row[1]}"


def _network(key, row):
    mcc, mnc, country, number = key
    return f"{mcc}-{mnc} {country or '--'} operator {number} {' '.join(row)}"


def _prefix(key, row):
    return f"+{key[0]} {' '.join(part or '--' for part in row)}"


def _changes(old, new, show):
    lines = [f"  + {show(key, new[key])}" for key in new if key not in old]
    lines += [f"  - {show(key, old[key])}" for key in old if key not in new]
    lines += [f"  ~ {show(key, old[key])} -> {show(key, new[key])}" for key in new if old.get(key, new[key]) != new[key]]
    return lines


def _section(title, lines, old, new):
    if not lines:
        return []
    more = [f"  and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return [f"{title}: {len(old)} before, {len(new)} now, {len(lines)} changes", *lines[:MOST_LINES], *more]
