"""Networks and the operators that run them, from the tables of Wikipedia."""

import html
import re
import unicodedata
from dataclasses import dataclass, replace

# Test networks and private ones: no message ever goes there.
UNUSED_MCCS = {"001", "999"}
# Abkhazia has no code of its own in ISO 3166-1. Mobile numbers and licences of the Cocos and Christmas Islands are
# Australian, so their names in the heading of the Australian table add nothing.
CODES_LEFT_OUT = {"AB", "CC", "CX"}
# The page of Belgium repeats two networks of Luxembourg.
COUNTRY_OF_MCC = {"270": "LU"}

OPERATIONAL = "operational"
# What the overlay's words become; operational is said by the newer source alone.
STATUS_OF_OVERLAY = {
    "Not operational": "not operational",
    "Returned spare": "not operational",
    "Reserved": "reserved",
    "Testing": "testing",
    "Test Network": "testing",
    "Allocated": "planned",
    "Implement / Design": "planned",
    "Ongoing": "planned",
    "Planned": "planned",
    "Upcoming": "planned",
    "Temporary operational": "unknown",
    "Operational": "unknown",
    "Unknown": "unknown",
}

NOISE = [
    # Footnote marks and interlanguage links: `[12]`, `[citation needed]`, `[pt]`, `[ nl ]`.
    re.compile(r"\[[^\]]*\]"),
    re.compile(r"<[^>]*>"),
    re.compile(r"\bArchived \d{4}-\d{2}-\d{2} at the Wayback Machine"),
]
# Names that the scrape ran together at a line break of the table.
REPAIRED = {"Colo-Colo MóvilWanderers Móvil": "Colo-Colo Móvil / Wanderers Móvil"}


@dataclass(frozen=True)
class Network:
    """One network in one country. The operator's name is its brand, else its legal name."""

    mcc: str
    mnc: str
    country: str
    name: str
    legal_name: str
    operator: str
    status: str

    @property
    def order(self):
        """Networks stand in the order of their codes, `01` before `001`."""
        return self.mcc, int(self.mnc), len(self.mnc), self.country, self.operator


def clean(text):
    """A name without what scraping a page leaves in it."""
    text = unicodedata.normalize("NFC", _decode_twice(html.unescape(text or "")))
    for noise in NOISE:
        text = noise.sub("", text)
    text = re.sub(r"[“”„]", '"', text).replace("\u2019", "'")
    text = " ".join(text.split()).replace("( ", "(").replace(" )", ")").strip(" ;,")
    return REPAIRED.get(text, text)


def _decode_twice(text):
    """Undoes UTF-8 that was once taken for Latin-1; `Ã` starts such a sequence and stands in no real name."""
    return text.encode("latin-1").decode("utf-8") if "Ã" in text else text


def read_networks(wikipedia, overlay):
    """The networks of the tables, each territory's on its own, with the status that both sources give together."""
    statuses = _Statuses(overlay)
    networks = {}
    for row in (row for group in wikipedia[1].values() for row in group):
        for country in _countries(row):
            network = _network(row, country, statuses)
            if network and _is_better(network, networks.get(_identity(network))):
                networks[_identity(network)] = network
    return _one_spelling(sorted(networks.values(), key=lambda network: network.order))


def _countries(row):
    if row["mcc"] in UNUSED_MCCS:
        return []
    countries = [code for code in row["codes_alpha_2"] if code not in CODES_LEFT_OUT]
    expected = COUNTRY_OF_MCC.get(row["mcc"])
    return [code for code in countries if expected in (None, code)] if countries else [""]


def _network(row, country, statuses):
    if not re.fullmatch(r"\d{3}", row["mcc"]) or not re.fullmatch(r"\d{2,3}", row["mnc"]):
        return None
    brand, legal_name = clean(row["brand"]), clean(row["operator"])
    if not brand and not legal_name:
        return None
    status = row["status"]
    if status != OPERATIONAL:
        status = statuses.find(row["mcc"], row["mnc"], country, {brand, legal_name})
    name = brand or legal_name
    return Network(row["mcc"], row["mnc"], country, name, legal_name, name, status)


def _identity(network):
    return network.mcc, network.mnc, network.country, network.operator.casefold()


def _is_better(network, known):
    """Of two rows for the same network, one that is operational says more."""
    return known is None or (network.status == OPERATIONAL and known.status != OPERATIONAL)


def _one_spelling(networks):
    """Operators whose names differ in case alone are one; the spelling of most networks wins, then the first."""
    spellings = {}
    for network in networks:
        spellings.setdefault((network.country, network.name.casefold()), []).append(network.name)
    chosen = {key: max(sorted(set(names)), key=names.count) for key, names in spellings.items()}
    return [replace(network, operator=chosen[network.country, network.name.casefold()]) for network in networks]


class _Statuses:
    """The words of the overlay, found by network and country, where it speaks of the same holder."""

    def __init__(self, overlay):
        self._rows = {}
        for row in overlay:
            self._rows.setdefault((row["mcc"], row["mnc"]), []).append(row)

    def find(self, mcc, mnc, country, names):
        """The status of a network that the newer source does not call operational."""
        names = {name.casefold() for name in names if name}
        for row in self._rows.get((mcc, mnc), []):
            holder = {clean(row["brand"]).casefold(), clean(row["operator"]).casefold()}
            is_of_country = not country or country in re.split(r"[/-]", row["countryCode"] or "")
            if is_of_country and names & holder:
                return STATUS_OF_OVERLAY[row["status"]]
        return "unknown"
