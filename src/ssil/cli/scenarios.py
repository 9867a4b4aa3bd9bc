"""`ssil scenarios`: list the paper's scenarios."""

from dataclasses import asdict

from cyclopts import App

from ssil.cli.terminal import Json, console, json_line, table
from ssil.reproduction import paper_scenarios as paper

app = App(
    name="scenarios",
    help_epilogue="""Examples:
  ssil scenarios
  ssil run --scenario 2 --dataset path/to/imagenet --out runs/imagenet""",
)


@app.default
def scenarios(*, json: Json = False) -> None:
    """List the 60 scenarios of the paper.

    A name contains the data set, the setting, T (the number of tasks, not counting a large base) and the memory: its
    total, or per class if it grows. "paper" tells whether the paper's tables print the scenario.
    """
    if json:
        for scenario in paper.scenarios():
            json_line(**asdict(scenario))
        return
    listed = table("no", "name", "classes a task", "N_M", "paper", words=2)
    listed.columns[0].min_width, listed.columns[1].no_wrap = None, True  # names are there to be copied
    for scenario in paper.scenarios():
        listed.add_row(*_row(scenario))
    console().print(listed)


def _row(scenario: paper.PaperScenario) -> tuple[str, ...]:
    half = scenario.classes // 2
    each = (half if scenario.large_base else scenario.classes) // scenario.tasks
    return (
        str(scenario.number),
        scenario.name,
        f"{half}, then {each}" if scenario.large_base else str(each),
        str(scenario.replay_batch),
        "yes" if scenario.in_tables else "no",
    )
