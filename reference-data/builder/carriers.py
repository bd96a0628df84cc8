"""Mobile prefixes and the operators that they were given to, from libphonenumber's carrier table."""

from dataclasses import dataclass

from .areas import longest_match
from .networks import OPERATIONAL, clean

# Names in English come first; a few prefixes only have one in another language.
LANGUAGES = ("en", "ru", "zh_Hant")


@dataclass(frozen=True)
class Carrier:
    """A prefix, its country and the operator's name."""

    prefix: str
    country: str
    name: str


def read_carriers(carrier_data, areas, area_rows):
    """Each prefix with its country and the carrier's name as the table spells it."""
    table = dict(area_rows)
    carriers = []
    for prefix, names in sorted(carrier_data.items()):
        name = next(names[language] for language in LANGUAGES if names.get(language))
        carriers.append(Carrier(prefix, _country(prefix, areas, table), clean(name)))
    return carriers


def _country(prefix, areas, table):
    """The one country of the valid numbers under the prefix; the table decides where there are several or none."""
    countries = areas.countries(prefix)
    return next(iter(countries)) if len(countries) == 1 else longest_match(table, prefix) or ""


def join(carriers, networks, aliases):
    """Carriers under the names of operators that have networks, where a name leads to one."""
    names = _Names(networks, aliases)
    return [Carrier(c.prefix, c.country, names.operator(c.country, c.name)) for c in carriers]


class _Names:
    """The ways from a carrier's name to an operator: an alias, its brand, its legal name. Nothing is guessed."""

    def __init__(self, networks, aliases):
        self._brands = {}
        self._legal_names = {}
        self._aliases = {}
        for network in sorted(networks, key=_preference):
            self._brands.setdefault((network.country, network.operator.casefold()), network.operator)
            self._legal_names.setdefault((network.country, network.legal_name.casefold()), network.operator)
        for key, name in aliases.items():
            country, _, carrier = key.partition("|")
            if self._brands.get((country, name.casefold())) != name:
                raise SystemExit(f"carrier-aliases.json: {key!r} leads to {name!r}, and no operator there has that name")
            self._aliases[country, carrier.casefold()] = name

    def operator(self, country, name):
        """The operator that a carrier's name stands for; itself where no way leads on."""
        key = country, name.casefold()
        # An alias is a decision taken with the exact names in view, so it goes first.
        if key in self._aliases:
            return self._aliases[key]
        return self._brands.get(key) or self._legal_names.get(key) or name


def _preference(network):
    """A legal name may stand behind several brands: an operational network's comes first."""
    return network.status != OPERATIONAL, network.order
