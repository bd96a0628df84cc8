"""From the packages to the files."""

import json

from . import tables
from .areas import Areas
from .carriers import join, read_carriers
from .networks import OPERATIONAL, read_networks
from .rates import rates
from .registry import Registry

ALIASES = "carrier-aliases.json"
LICENCE = "LICENSE-APACHE-2.0.txt"


def build(sources, committed, into):
    """Writes every derived file. What is committed gives the aliases, the countries and the IDs given so far."""
    areas = Areas(sources.phonenumbers)
    area_rows = areas.rows()
    areas.check(area_rows)
    networks = read_networks(sources.wikipedia, sources.overlay)
    aliases = json.loads((committed / ALIASES).read_text(encoding="utf-8"))
    carriers = join(read_carriers(sources.carrier_data, areas, area_rows), networks, aliases)
    registry = Registry(tables.read(committed, tables.REGISTRY))
    ids = registry.assign(_holdings(networks, carriers), _old_holdings(committed))

    network_rows = [
        (n.mcc, n.mnc, n.country, ids[n.country, n.operator], n.name, n.status)
        for n in sorted(networks, key=lambda n: (*n.order[:3], ids[n.country, n.operator]))
    ]
    prefix_rows = [(c.prefix, c.country, ids[c.country, c.name]) for c in sorted(carriers, key=_prefix_order)]
    tables.write(into, tables.OPERATORS, sorted((number, *operator) for operator, number in ids.items()))
    tables.write(into, tables.NETWORKS, network_rows)
    tables.write(into, tables.PREFIXES, prefix_rows)
    tables.write(into, tables.AREAS, area_rows)
    tables.write(into, tables.REGISTRY, registry.rows)
    countries = tables.read(committed, tables.COUNTRIES)
    price_list = rates(countries, _priced(networks, ids), prefix_rows, area_rows, _main_networks(networks, ids))
    tables.write(into, tables.RATES, price_list)
    (into / LICENCE).write_text(sources.apache_licence, encoding="utf-8")


def _prefix_order(carrier):
    """By country, then ascending; those without a country last."""
    return not carrier.country, carrier.country, int(carrier.prefix)


def _holdings(networks, carriers):
    """What each operator holds: its networks, or its prefixes where it has none."""
    held = {}
    for network in networks:
        held.setdefault((network.country, network.operator), set()).add((network.mcc, network.mnc, network.country))
    with_networks = set(held)
    for carrier in carriers:
        if (carrier.country, carrier.name) not in with_networks:
            held.setdefault((carrier.country, carrier.name), set()).add(carrier.prefix)
    return held


def _old_holdings(committed):
    """The same by ID, from the files as they are committed."""
    held = {}
    for mcc, mnc, country, number, _, _ in tables.read(committed, tables.NETWORKS):
        held.setdefault(int(number), set()).add((mcc, mnc, country))
    with_networks = set(held)
    for prefix, _, number in tables.read(committed, tables.PREFIXES):
        if int(number) not in with_networks:
            held.setdefault(int(number), set()).add(prefix)
    return held


def _priced(networks, ids):
    """The networks as the price list needs them."""
    return [
        {
            "mcc": n.mcc, "mnc": n.mnc, "country": n.country, "name": n.name, "operator": n.operator,
            "operator_id": ids[n.country, n.operator], "status": n.status, "order": n.order,
        }
        for n in networks
    ]


def _main_networks(networks, ids):
    """The main network of each operator: under the MCC with most of its operational ones, the first that is operational.

    The service works it out in the same way when it reads the files.
    """
    by_operator = {}
    for network in networks:
        by_operator.setdefault(ids[network.country, network.operator], []).append(network)
    return {number: _main_network(held) for number, held in by_operator.items()}


def _main_network(held):
    operational = [n.mcc for n in held if n.status == OPERATIONAL]
    mcc = min((n.mcc for n in held), key=lambda mcc: (-operational.count(mcc), mcc))
    main = min((n for n in held if n.mcc == mcc), key=lambda n: (n.status != OPERATIONAL, n.order))
    return main.mcc, main.mnc
