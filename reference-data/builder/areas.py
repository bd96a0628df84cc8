"""Which country a number belongs to by its leading digits.

A calling code of one country is one row. Where countries share a calling code, libphonenumber tries its regions in turn
and takes the first that claims the number; the search below follows the patterns of all those regions at once and
writes a row for each prefix under which every valid number belongs to one country.
"""

from functools import lru_cache

from . import patterns

# Territories that libphonenumber tells apart and ISO 3166-1 does not.
ISO_OF_REGION = {"AC": "SH", "TA": "SH"}
NON_GEOGRAPHIC = "001"
MOST_DIGITS = 15
TYPES = (
    "premium_rate", "toll_free", "shared_cost", "voip", "personal_number", "pager", "uan", "voicemail",
    "fixed_line", "mobile",
)


class Areas:
    """The areas of every calling code."""

    def __init__(self, phonenumbers):
        self._phonenumbers = phonenumbers
        self._plans = {
            str(code): Plan(phonenumbers, code, regions)
            for code, regions in phonenumbers.COUNTRY_CODE_TO_REGION_CODE.items()
            if regions != (NON_GEOGRAPHIC,)
        }

    def rows(self):
        """Each (prefix, country), ascending."""
        return sorted(row for plan in self._plans.values() for row in plan.rows())

    def countries(self, prefix):
        """The country of the valid numbers under a prefix: several where it is shared, none where there is none."""
        for length in (1, 2, 3):
            plan = self._plans.get(prefix[:length])
            if plan:
                return plan.countries(prefix[length:])
        return frozenset()

    def check(self, rows):
        """Holds a table against the library itself: the examples under each row must be where the table puts them."""
        table = dict(rows)
        for prefix in table:
            for number in self._examples(prefix):
                parsed = self._phonenumbers.parse("+" + number)
                region = self._phonenumbers.region_code_for_number(parsed)
                found = longest_match(table, number)
                if ISO_OF_REGION.get(region, region) != found:
                    raise SystemExit(f"areas: +{number} is of {region}, the table says {found}")

    def _examples(self, prefix):
        for length in (1, 2, 3):
            plan = self._plans.get(prefix[:length])
            if plan:
                return [prefix[:length] + number for number in plan.examples(prefix[length:])]
        return []


def longest_match(table, digits):
    """What a table by prefix says of the digits."""
    prefixes = (digits[:length] for length in range(len(digits), 0, -1))
    return next((table[prefix] for prefix in prefixes if prefix in table), None)


class Plan:
    """The regions of one calling code, in the order in which libphonenumber tries them."""

    def __init__(self, phonenumbers, code, regions):
        self._code = str(code)
        self._main = ISO_OF_REGION.get(regions[0], regions[0])
        self._regions = [ISO_OF_REGION.get(region, region) for region in regions]
        self._most_digits = MOST_DIGITS - len(self._code)
        self._is_shared = len(set(self._regions)) > 1
        self._start = ()
        if self._is_shared:
            metadata = [phonenumbers.PhoneMetadata.metadata_for_region(region) for region in regions]
            self._start = tuple(_region_state(data) for data in metadata)
        self._reachable = lru_cache(maxsize=None)(self._reachable)

    def rows(self):
        """The rows of this calling code."""
        rows = [(self._code, self._main)]
        if self._is_shared:
            self._split(self._start, "", rows)
        return rows

    def countries(self, national):
        """The countries of the valid numbers that start with the national digits."""
        if not self._is_shared:
            return frozenset((self._main,))
        state = self._start
        for digit in national:
            state = _step(state, digit)
        return self._reachable(state, len(national))

    def examples(self, national):
        """A few valid numbers under the prefix, where the search has followed it."""
        if not self._is_shared:
            return []
        state = self._start
        for digit in national:
            state = _step(state, digit)
        found = (self._example(state, national, order) for order in ("0123456789", "9876543210"))
        return [number for number in found if number]

    def _example(self, state, national, order):
        if not self._reachable(state, len(national)):
            return None
        if self._owner(state, len(national)):
            return national
        steps = (self._example(_step(state, digit), national + digit, order) for digit in order)
        return next((number for number in steps if number), None)

    def _split(self, state, national, rows):
        countries = self._reachable(state, len(national))
        if not countries - {self._main}:
            return
        if len(countries) == 1:
            rows.append((self._code + national, *countries))
            return
        for digit in "0123456789":
            self._split(_step(state, digit), national + digit, rows)

    def _reachable(self, state, length):
        """The owners of all valid numbers from this state on."""
        owner = self._owner(state, length)
        owners = {owner} if owner else set()
        if length < self._most_digits and any(region[1] != patterns.NEVER for region in state):
            for digit in "0123456789":
                owners |= self._reachable(_step(state, digit), length + 1)
        return frozenset(owners)

    def _owner(self, state, length):
        """The country of the number that ends here, when it is valid."""
        for country, (leading, general, lengths, types) in zip(self._regions, state):
            is_valid = _is_valid(general, lengths, types, length)
            if leading is None and is_valid:
                return country
            if leading is not None and patterns.is_match(leading):
                return country if is_valid else None
        return None


def _region_state(metadata):
    """Leading digits, general pattern and its lengths, and each type's pattern and lengths."""
    leading = None
    if metadata.leading_digits is not None:
        # Only the start of a number has to match, so what follows is free.
        digit = ("digit", patterns.ANY_DIGIT)
        rest = patterns.END
        for _ in range(MOST_DIGITS):
            rest = patterns.either((patterns.END, patterns.then(digit, rest)))
        leading = patterns.then(patterns.parse(metadata.leading_digits), rest)
    general = metadata.general_desc
    descriptions = [getattr(metadata, name) for name in TYPES]
    types = frozenset(
        (patterns.parse(desc.national_number_pattern), desc.possible_length)
        for desc in descriptions
        if desc is not None and desc.national_number_pattern
    )
    return leading, patterns.parse(general.national_number_pattern), general.possible_length, types


def _step(state, digit):
    return tuple(_step_region(region, digit) for region in state)


@lru_cache(maxsize=None)
def _step_region(region, digit):
    leading, general, lengths, types = region
    followed = ((patterns.after(term, digit), possible) for term, possible in types)
    return (
        None if leading is None else patterns.after(leading, digit),
        patterns.after(general, digit),
        lengths,
        frozenset((term, possible) for term, possible in followed if term != patterns.NEVER),
    )


def _is_valid(general, lengths, types, length):
    return (
        _fits(general, lengths, length)
        and any(_fits(term, possible, length) for term, possible in types)
    )


def _fits(term, lengths, length):
    return (not lengths or length in lengths) and patterns.is_match(term)
