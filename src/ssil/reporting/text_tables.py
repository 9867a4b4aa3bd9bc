"""Tables of text: for people (HTML, Markdown), papers (LaTeX) and programs (CSV)."""

import csv
import html
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
    """Cells under a header; the first `words` columns hold words, the others numbers; `best` cells are bold.

    >>> print(Table(["run", "top-1"], [["ft", "23.9"], ["ssil", "30.8"]], best=frozenset({(1, 1)})).markdown(), end="")
    | run | top-1 |
    | :-- | --: |
    | ft | 23.9 |
    | ssil | **30.8** |
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()
    """(row, column), counted from 0."""
    words: int = 1

    def markdown(self) -> str:
        """A table as GitHub reads it."""
        rule = [":--" if column < self.words else "--:" for column in range(len(self.header))]
        lines = [map(_markdown, self.header), rule, *self._cells(_markdown, "**{}**")]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def latex(self) -> str:
        """A tabular with the rules of the package booktabs."""
        columns = "l" * self.words + "r" * (len(self.header) - self.words)
        head, *body = (
            f"{' & '.join(line)} \\\\" for line in (map(_latex, self.header), *self._cells(_latex, r"\textbf{{{}}}"))
        )
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
        return "\n".join([*lines, "\\end{tabular}\n"])

    def csv(self) -> str:
        """The bare cells."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
        return out.getvalue()

    def html(self) -> str:
        """A `<table>`; cells of words have the class `word`."""
        kinds = [' class="word"' if column < self.words else "" for column in range(len(self.header))]
        head = "".join(f"<th{kind}>{html.escape(name)}</th>" for kind, name in zip(kinds, self.header, strict=True))
        body = "".join(
            f"<tr>{''.join(f'<td{kind}>{cell}</td>' for kind, cell in zip(kinds, row, strict=True))}</tr>\n"
            for row in self._cells(html.escape, "<b>{}</b>")
        )
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>"

    def _cells(self, escaped: Callable[[str], str], bold: str) -> Iterator[list[str]]:
        for place, row in enumerate(self.rows):
            yield [
                bold.format(escaped(cell)) if (place, column) in self.best else escaped(cell)
                for column, cell in enumerate(row)
            ]


def _markdown(text: str) -> str:
    r"""On one line, with a backslash before what Markdown would take as a sign.

    >>> print(_markdown("ce_ss | _mine_"))
    ce_ss \| \_mine\_
    """
    return re.sub(r"([\\`*|<\[]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))


def _latex(text: str) -> str:
    r"""On one line, with LaTeX's own signs written out.

    >>> print(_latex("ce_ss: 30.8 ± 0.4 %"))
    ce\_ss: 30.8 $\pm$ 0.4 \%
    """
    return " ".join(text.split()).translate(_LATEX)
