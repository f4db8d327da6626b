"""Text that LaTeX prints as it is."""

from __future__ import annotations

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    # After a line's end these would be read as its options.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "−": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
    "→": r"$\rightarrow$",
    "Δ": r"$\Delta$",
    "α": r"$\alpha$",
    "γ": r"$\gamma$",
    "σ": r"$\sigma$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "✕": r"$\times$",
}
_TABLE = str.maketrans(_SPECIAL)


def escape(text: str) -> str:
    """One line of text; what is special to LaTeX loses its meaning, control characters vanish."""
    line = " ".join(text.split())
    return "".join(letter for letter in line if letter.isprintable()).translate(_TABLE)
