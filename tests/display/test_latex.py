from __future__ import annotations

import pytest

from sacm.display.latex import escape


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a_b & 5 %", r"a\_b \& 5 \%"),
        (r"\x{1}", r"\textbackslash{}x\{1\}"),
        ("−1 ± 2 … 3", r"$-$1 $\pm$ 2 \ldots{} 3"),
        ("[x]*", "{[}x{]}{*}"),
        ("two\nlines\x07", "two lines"),
        ("<0.001", r"\textless{}0.001"),
    ],
)
def test_what_is_special_is_printed(text, code):
    assert escape(text) == code
