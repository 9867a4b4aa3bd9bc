"""Tables are escaped in each of their formats."""

from dataclasses import replace

from ssil.reporting.text_tables import Table

NASTY = Table(["run | name", "top-1 %"], [['<a_b>, "x"', "1.0 ± 0.5"], ["b\\c", "2"]], frozenset({(0, 1)}))


def test_markdown() -> None:
    assert NASTY.markdown().splitlines() == [
        r"| run \| name | top-1 % |",
        "| :-- | --: |",
        r'| \<a_b>, "x" | **1.0 ± 0.5** |',
        r"| b\\c | 2 |",
    ]


def test_latex() -> None:
    assert NASTY.latex().splitlines() == [
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"run | name & top-1 \% \\",
        r"\midrule",
        r'\textless{}a\_b\textgreater{}, "x" & \textbf{1.0 $\pm$ 0.5} \\',
        r"b\textbackslash{}c & 2 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_a_long_note_is_no_wider_than_the_table() -> None:
    rows = replace(NASTY, note="a sentence of some words " * 10).latex().split("\\bottomrule\n")[1].splitlines()[:-1]
    notes = [row.removeprefix(r"\multicolumn{2}{l}{\footnotesize ").removesuffix(r"} \\") for row in rows]
    assert " ".join(notes) == ("a sentence of some words " * 10).strip()
    assert max(map(len, notes)) <= 45


def test_a_row_does_not_begin_with_what_latex_takes_for_an_option() -> None:
    lines = Table(["name", "x"], [["[mine]", "1"], ["*", "2"]]).latex().splitlines()
    assert lines[4:6] == [r"{}[mine] & 1 \\", r"{}* & 2 \\"]


def test_csv() -> None:
    assert NASTY.csv() == 'run | name,top-1 %\n"<a_b>, ""x""",1.0 ± 0.5\nb\\c,2\n'
