from __future__ import annotations

import pytest

from sacm.experiments.statistics import PairedTest, Summary, bootstrap_mean
from sacm.reports import number_format


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.30921, "0.3092"),
        (3.0, "3.000"),
        (12345.6, "12346"),
        (12345678.9, "1.235e+07"),
        (1234.4, "1234"),
        (-0.5, "−0.5000"),
        (0.0, "0.000"),
        (3e-7, "3.000e−07"),
        (None, "–"),
    ],
)
def test_numbers(value, text):
    assert number_format.number(value) == text


def test_spread_has_the_decimals_of_the_mean():
    assert number_format.mean_and_spread(Summary(3, 12.3456, 0.000123)) == "12.35 ± 0.00"
    assert number_format.mean_and_spread(Summary(1, 0.5, None)) == "0.5000"
    assert number_format.mean_and_spread(Summary(2, 2e6, 1e5)) == "(2.000 ± 0.100)e6"
    assert number_format.mean_and_spread(None) == "–"


def test_signs_are_minus_signs():
    assert number_format.percent(-1.26) == "−1.3 %"
    assert number_format.percent(None) == "–"
    assert number_format.percent(-0.01) == "+0.0 %"
    assert number_format.format_difference(-0.012, share=True, like=0.5) == "−1.20 pp"
    assert number_format.format_difference(0.00412, share=False, like=0.31) == "+0.0041"


def test_p_values():
    assert number_format.p_value(PairedTest(3, 1.0, 0.0123)) == "0.012"
    assert number_format.p_value(PairedTest(3, 9.0, 0.0001)) == "<0.001"
    assert number_format.p_value(PairedTest(1, None, None)) == "–"
    assert number_format.p_equals(0.0001) == "p < 0.001"
    assert number_format.p_equals(0.5) == "p = 0.500"


def test_intervals_need_five_values():
    assert number_format.interval(bootstrap_mean([2.0] * 4)) == "–"
    assert number_format.interval(bootstrap_mean([2.0] * 5)) == "+2.0 … +2.0"
    assert number_format.interval(None) == "–"


def test_counts():
    assert (number_format.count(1, "seed"), number_format.count(2, "seed")) == ("1 seed", "2 seeds")
