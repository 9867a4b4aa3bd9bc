"""Tables of text as Markdown, LaTeX and CSV (HTML: templates/macros.html)."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from textwrap import wrap

_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
    }
)


@dataclass(frozen=True)
class Table:
    """Cells under a header; `best` cells are bold.

    The first `words` columns are left-aligned (words), the others right-aligned (numbers).

    >>> print(Table(["run", "top-1"], [["ft", "23.9"], ["ssil", "30.8"]], best=frozenset({(1, 1)})).markdown(), end="")
    | run | top-1 |
    | :-- | --: |
    | ft | 23.9 |
    | ssil | **30.8** |
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()
    """Bold cells as (row, column), both counted from 0."""
    words: int = 1
    note: str = ""
    """A sentence below the LaTeX table."""
    groups: Sequence[tuple[str, int]] = ()
    """Titles above the header of the LaTeX table, each with the number of columns it covers, from the second one on."""

    def markdown(self) -> str:
        """Return the table in GitHub's Markdown."""
        rule = [":--" if column < self.words else "--:" for column in range(len(self.header))]
        lines = [map(_markdown, self.header), rule, *self._cells(_markdown, "**{}**")]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def latex(self) -> str:
        """Return a LaTeX tabular with rules of the package booktabs."""
        columns = "l" * self.words + "r" * (len(self.header) - self.words)
        head, *body = map(_latex_row, ([_latex(cell) for cell in self.header], *self._cells(_latex, r"\textbf{{{}}}")))
        above = [r"\toprule", *self._group_rows(), head, r"\midrule"]
        lines = [rf"\begin{{tabular}}{{{columns}}}", *above, *body, r"\bottomrule"]
        return "\n".join([*lines, *self._note_rows(), "\\end{tabular}\n"])

    def _group_rows(self) -> list[str]:
        """Return the row of titles above the header, and a rule below each."""
        if not self.groups:
            return []
        ends = [*accumulate((width for _, width in self.groups), initial=1)]
        cells = [rf"\multicolumn{{{width}}}{{c}}{{{_latex(title)}}}" for title, width in self.groups]
        rules = [rf"\cmidrule(lr){{{start + 1}-{end}}}" for start, end in pairwise(ends)]
        return [_latex_row(["", *cells]), " ".join(rules)]

    def _note_rows(self) -> list[str]:
        """Return the note as rows that are about as wide as the table: a longer one would widen its last column."""
        width = sum(max(map(len, column)) + 2 for column in zip(self.header, *self.rows, strict=True))
        return [
            rf"\multicolumn{{{len(self.header)}}}{{l}}{{\footnotesize {_latex(line)}}} \\"
            for line in wrap(self.note, max(45, width), break_on_hyphens=False)
        ]

    def csv(self) -> str:
        """Return the cells, without marks of the best, as CSV."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()

    def _cells(self, escaped: Callable[[str], str], bold: str) -> Iterator[list[str]]:
        for place, row in enumerate(self.rows):
            yield [
                bold.format(escaped(cell)) if (place, column) in self.best else escaped(cell)
                for column, cell in enumerate(row)
            ]


def _markdown(text: str) -> str:
    r"""Return the text on one line, with a backslash before characters that have a meaning in Markdown.

    >>> print(_markdown("ce_ss | _mine_"))
    ce_ss \| \_mine\_
    """
    return re.sub(r"([\\`*|<\[]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))


def _latex(text: str) -> str:
    r"""Return the text on one line, with LaTeX's special characters escaped.

    >>> print(_latex("ce_ss: 30.8 ± 0.4 %"))
    ce\_ss: 30.8 $\pm$ 0.4 \%
    """
    return " ".join(text.split()).translate(_LATEX)


def _latex_row(cells: Sequence[str]) -> str:
    r"""Return a row of cells; a first character that the end of the row before would take as its option is protected.

    >>> print(_latex_row(["[a]", "1"]))
    {}[a] & 1 \\
    """
    return re.sub(r"^(?=[*\[])", "{}", " & ".join(cells)) + r" \\"
