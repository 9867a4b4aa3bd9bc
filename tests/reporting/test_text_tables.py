"""Tables are escaped in each of their formats."""

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


def test_csv() -> None:
    assert NASTY.csv() == 'run | name,top-1 %\n"<a_b>, ""x""",1.0 ± 0.5\nb\\c,2\n'
