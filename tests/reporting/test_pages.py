"""Templates escape what they are given."""

import re

import pytest
from jinja2 import UndefinedError
from plotly import graph_objects as go

from ssil.reporting.pages import TEMPLATES, render
from ssil.reporting.text_tables import Table


def _macro(call: str, **values: object) -> str:
    return TEMPLATES.from_string(f"{{% import 'macros.html' as macros %}}{{{{ macros.{call} }}}}").render(**values)


def test_a_table_has_classes_bold_cells_and_escaped_text() -> None:
    table = Table(["run | name", "top-1 %"], [['<a_b>, "x"', "1.0 ± 0.5"], ["b", "2"]], frozenset({(0, 1)}))
    text = _macro("table(table)", table=table)
    assert '<td class="word">&lt;a_b&gt;, &#34;x&#34;</td><td><b>1.0 ± 0.5</b></td>' in text
    assert '<th class="word">run | name</th><th>top-1 %</th>' in text
    assert text.count("<tr>") == 3


def test_a_plot_s_text_ends_no_script() -> None:
    figure = go.Figure(go.Scatter(x=[1], y=[2], name="</script><b>"))
    text = _macro("plot(figure, label)", figure=figure, label='"<i>')
    assert text.count("</script>") == 1
    assert 'aria-label="&#34;&lt;i&gt;"' in text


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="title"):
        render("page.html")


def test_a_page_contains_its_scripts_and_styles() -> None:
    text = render("page.html", title="<i>")
    assert len(re.findall("<script>", text)) == 2
    assert "<h1>&lt;i&gt;</h1>" in text
    assert ".findings {" in text
