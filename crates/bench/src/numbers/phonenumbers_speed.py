"""Measures how fast PyPI's phonenumbers does the same as POST /numberCorrection, for `scripts/bench numbers`.

    phonenumbers_speed.py LIST SECONDS

Each line of LIST has a number, a tab, and a country code or nothing. The number is parsed for its country, then as
+digits. The first valid result is formatted, and its type and country are found. Prints corrections a second.
"""

import sys
import time

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberFormat


def read(text, country):
    try:
        number = phonenumbers.parse(text, country)
    except NumberParseException:
        return None
    return number if phonenumbers.is_valid_number(number) else None


def correct(raw, country):
    number = read(raw, country) if country else None
    if number is None:
        number = read("+" + raw.lstrip("+"), None)
    if number is None:
        return None
    return (
        phonenumbers.format_number(number, PhoneNumberFormat.E164),
        phonenumbers.number_type(number),
        phonenumbers.region_code_for_number(number),
    )


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    with open(path, encoding="utf-8") as lines:
        items = [line.rstrip("\n").split("\t") for line in lines]
    for raw, country in items:
        correct(raw, country)
    done, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        for raw, country in items:
            correct(raw, country)
        done += len(items)
    print(round(done / elapsed))


main()
