"""`ssil scenarios`: the paper's."""

from dataclasses import asdict

from cyclopts import App

from ssil.cli.output import Json, console, json_line, table
from ssil.paper import scenarios as paper

app = App(
    name="scenarios",
    help_epilogue="""Examples:
  ssil scenarios
  ssil run --scenario 2 --dataset path/to/imagenet --out runs/imagenet""",
)


@app.default
def scenarios(*, json: Json = False) -> None:
    """List the 60 scenarios of the paper."""
    if json:
        for scenario in paper.scenarios():
            json_line(**asdict(scenario))
        return
    made = table("number", "name", "tasks", "classes a task", "memory", "N_M", "in the paper's tables", words=2)
    for scenario in paper.scenarios():
        made.add_row(*_row(scenario))
    console().print(made)


def _row(scenario: paper.PaperScenario) -> tuple[str, ...]:
    half = scenario.classes // 2
    each = (half if scenario.large_base else scenario.classes) // scenario.tasks
    return (
        str(scenario.number),
        scenario.name,
        f"1 + {scenario.tasks}" if scenario.large_base else str(scenario.tasks),
        f"{half}, then {each}" if scenario.large_base else str(each),
        f"{scenario.memory}" if scenario.memory else f"{scenario.memory_per_class} a class",
        str(scenario.replay_batch),
        "yes" if scenario.in_tables else "no",
    )
