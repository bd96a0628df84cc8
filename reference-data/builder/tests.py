"""Tests of the pure parts; run with `python3 -B -m unittest builder.tests` in the folder above."""

import itertools
import re
import unittest

from . import patterns
from .networks import clean
from .rates import as_cell
from .registry import Registry


class Patterns(unittest.TestCase):
    def test_following_a_pattern_equals_matching_it(self):
        for pattern in ("7(?:7|8[0-3])\\d?", "[2-47]\\d{1,2}|90", "(?:0|12?){2}3", "(?:1|2\\d)?5"):
            term = patterns.parse(pattern)
            for digits in itertools.chain.from_iterable(itertools.product("0123456789", repeat=n) for n in range(5)):
                left = term
                for digit in digits:
                    left = patterns.after(left, digit)
                expected = re.fullmatch(pattern, "".join(digits)) is not None
                self.assertEqual(patterns.is_match(left), expected, (pattern, digits))

    def test_an_unknown_construct_is_refused(self):
        for pattern in ("1+", "1*", "(1)", "(?=1)", ".", "^1", "(?:1", "[a-c]"):
            with self.assertRaises(ValueError, msg=pattern):
                patterns.parse(pattern)


class Names(unittest.TestCase):
    def test_noise_is_stripped(self):
        for scraped, name in {
            " LMT ": "LMT",
            "Nethys\u00a0[fr]": "Nethys",
            "Correios Celular[pt]": "Correios Celular",
            "Vodafone[12][citation needed]": "Vodafone",
            'JSC "GlobalTel" Archived 2018-06-11 at the Wayback Machine': 'JSC "GlobalTel"',
            "PRJSC “Kyivstar\"": 'PRJSC "Kyivstar"',
            "Cable &amp;  Wireless": "Cable & Wireless",
            "Al Jawal (STC )": "Al Jawal (STC)",
            "Telef\u00c3\u00b3nica": "Telefónica",
            "<br>3": "3",
        }.items():
            self.assertEqual(clean(scraped), name)

    def test_a_formula_becomes_text(self):
        for text, cell in {"+Móvil": "'+Móvil", "=1": "'=1", "@": "'@", "-": "'-", "O2": "O2", "": ""}.items():
            self.assertEqual(as_cell(text), cell)


class Ids(unittest.TestCase):
    ROWS = [("1", "LV", "LMT"), ("2", "LV", "Zetcom"), ("3", "EE", "EMT")]
    OLD = {1: {"01"}, 2: {"05", "06"}, 3: {"01"}}

    def assign(self, holdings, rows=None, old=None):
        registry = Registry(rows or self.ROWS)
        return registry.assign(holdings, old or self.OLD), registry.rows

    def test_the_same_name_keeps_its_id_whatever_it_holds(self):
        ids, rows = self.assign({("LV", "LMT"): {"99"}})
        self.assertEqual(ids, {("LV", "LMT"): 1})
        self.assertEqual(len(rows), 3, "what vanished stays in the registry")

    def test_a_rename_keeps_the_id(self):
        ids, rows = self.assign({("LV", "LMT"): {"01"}, ("LV", "Bite"): {"05", "06", "07"}})
        self.assertEqual(ids[("LV", "Bite")], 2)
        self.assertEqual(rows[-1], (2, "LV", "Bite"))

    def test_a_former_name_comes_back_to_its_id(self):
        rows = [*self.ROWS, ("2", "LV", "Bite")]
        ids, _ = self.assign({("LV", "Zetcom"): {"05"}}, rows)
        self.assertEqual(ids, {("LV", "Zetcom"): 2})

    def test_a_former_name_beside_the_present_one_is_another_operator(self):
        rows = [*self.ROWS, ("2", "LV", "Bite")]
        ids, rows = self.assign({("LV", "Zetcom"): {"05"}, ("LV", "Bite"): {"06"}}, rows)
        self.assertEqual(ids, {("LV", "Bite"): 2, ("LV", "Zetcom"): 4})
        ids, _ = self.assign({("LV", "Zetcom"): {"05"}, ("LV", "Bite"): {"06"}}, rows)
        self.assertEqual(ids, {("LV", "Bite"): 2, ("LV", "Zetcom"): 4}, "and stays it")

    def test_a_new_operator_gets_an_id_that_was_never_given(self):
        for name, holdings in {
            "holds nothing known": {("LV", "New"): {"77"}},
            "holds too little of the old one": {("LV", "New"): {"05"}},
            "is of another country": {("LT", "New"): {"01"}},
        }.items():
            ids, rows = self.assign(holdings)
            self.assertEqual(set(ids.values()), {4}, name)
            self.assertEqual(len(rows), 4, name)


if __name__ == "__main__":
    unittest.main()
