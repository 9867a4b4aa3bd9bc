"""Tables say the same in all their forms, whatever the cells hold."""

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


def test_html() -> None:
    text = NASTY.html()
    assert '<td class="word">&lt;a_b&gt;, &quot;x&quot;</td><td><b>1.0 ± 0.5</b></td>' in text
    assert '<th class="word">run | name</th><th>top-1 %</th>' in text
    assert text.count("<tr>") == 3
