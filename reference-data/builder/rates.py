"""A demonstration price list.

Prices are no open data, so this list is computed: a base by the region of the calling code, a spread by country and one
by operator, both taken from a digest of their names. The same data always gives the same list, and no price in it is
anybody's.
"""

import hashlib

from .networks import OPERATIONAL

ONLY = "All"
OTHERS = "All other carriers"
# The largest number of networks that a country has rows for.
MOST_NETWORKS = 10
FORMULA_STARTS = ("=", "+", "-", "@", "\t")

# In ten-thousandths, by the first digit of the calling code: North America, Africa, Europe (twice), the Americas,
# Oceania and South-East Asia, Russia and Kazakhstan, East Asia, Middle East and South Asia.
BASES = {"1": 250, "2": 700, "3": 520, "4": 500, "5": 450, "6": 420, "7": 560, "8": 480, "9": 600}
LEAST, MOST = 100, 2000


def rates(countries, networks, prefixes, areas, main_networks):
    """The rows of the list: by country, its default first, then its networks in the order of their codes.

    `main_networks` maps an operator's ID to the main network of each operator that has one.
    """
    calling_codes = _calling_codes(areas)
    main_mccs = _main_mccs(networks)
    chosen = _chosen(networks, prefixes, main_networks)
    rows = []
    for country, name in countries:
        rows_of_country = chosen.get(country, [])
        base = _base(country, calling_codes.get(country, ""))
        label = OTHERS if rows_of_country else ONLY
        rows.append((name, country, label, label, main_mccs.get(country, ""), "", _rate(base)))
        for operator, network in rows_of_country:
            rate = _rate(base * (80 + _spread(f"{country} {operator}", 35)) // 100)
            rows.append((name, country, operator, network["name"], network["mcc"], network["mnc"], rate))
    return [tuple(map(as_cell, row)) for row in rows]


def as_cell(text):
    """A cell that no spreadsheet takes for a formula."""
    return "'" + text if text.startswith(FORMULA_STARTS) else text


def _calling_codes(areas):
    """The shortest area of each country."""
    codes = {}
    for prefix, country in sorted(areas, key=lambda row: (len(row[0]), row[0])):
        codes.setdefault(country, prefix)
    return codes


def _main_mccs(networks):
    """The code with most of a country's operational networks, the lowest of equals."""
    counts = {}
    for network in networks:
        of_country = counts.setdefault(network["country"], {})
        is_operational = network["status"] == OPERATIONAL
        of_country[network["mcc"]] = of_country.get(network["mcc"], 0) + is_operational
    return {country: min(mccs, key=lambda mcc: (-mccs[mcc], mcc)) for country, mccs in counts.items()}


def _chosen(networks, prefixes, main_networks):
    """The operators of each country that get a row of their own: the largest of the operational ones."""
    ranges = {}
    for prefix, _, operator_id in prefixes:
        # A shorter prefix holds more numbers than a longer one.
        ranges[operator_id] = ranges.get(operator_id, 0.0) + 10.0 ** -len(prefix)
    candidates, sizes = {}, {}
    for network in networks:
        operational, all_of_them = sizes.get(network["operator_id"], (0, 0))
        operational += network["status"] == OPERATIONAL
        sizes[network["operator_id"]] = operational, all_of_them + 1
        is_main = main_networks[network["operator_id"]] == (network["mcc"], network["mnc"])
        if network["country"] and is_main and network["status"] == OPERATIONAL:
            candidates.setdefault(network["country"], []).append(network)
    return {country: _largest(found, ranges, sizes) for country, found in candidates.items()}


def _largest(candidates, ranges, sizes):
    """Those with most numbers, then most networks: some countries have no prefixes by operator."""

    def rank(network):
        number = network["operator_id"]
        return -ranges.get(number, 0.0), *(-size for size in sizes[number]), network["order"]

    kept = sorted(sorted(candidates, key=rank)[:MOST_NETWORKS], key=lambda network: network["order"])
    return [(network["operator"], network) for network in kept]


def _base(country, calling_code):
    base = BASES.get(calling_code[:1], 800)
    return base * (60 + _spread(country, 120)) // 100


def _spread(text, below):
    """A number below the limit that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % below


def _rate(ten_thousandths):
    """At most four decimals, without zeros at the end."""
    value = min(max(ten_thousandths, LEAST), MOST)
    return f"0.{value:04}".rstrip("0")
