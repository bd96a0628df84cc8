"""The CSV files: what they hold, how they are read and written."""

import csv

OPERATORS = "operators.csv"
NETWORKS = "networks.csv"
PREFIXES = "prefixes.csv"
AREAS = "areas.csv"
REGISTRY = "operator-ids.csv"
RATES = "demonstration-rates.csv"
COUNTRIES = "countries.csv"

HEADERS = {
    OPERATORS: ("id", "country", "name"),
    NETWORKS: ("mcc", "mnc", "country", "operator_id", "name", "status"),
    PREFIXES: ("prefix", "country", "operator_id"),
    AREAS: ("prefix", "country"),
    REGISTRY: ("id", "country", "name"),
    RATES: ("CountryName", "CountryCode", "Operator", "Network", "MCC", "MNC", "Rate"),
    COUNTRIES: ("country", "name"),
}


def read(folder, name):
    """The rows of a file without its header; none when there is no file yet."""
    path = folder / name
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    if tuple(header) != HEADERS[name]:
        raise SystemExit(f"{name}: the header is {header}, expected is {HEADERS[name]}")
    return [tuple(row) for row in rows]


def write(folder, name, rows):
    """Writes a file: UTF-8, a header, lines that end in LF, quotes only where needed."""
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADERS[name])
        writer.writerows(rows)
