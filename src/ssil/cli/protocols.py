"""`ssil protocols`: list the protocols of published tables."""

from dataclasses import asdict

from cyclopts import App

from ssil.benchmark.config import RunConfig
from ssil.cli.terminal import Json, console, json_line, table
from ssil.reproduction.field_protocols import (
    PROTOCOLS,
    SCHEDULE,
    SOURCES,
    FieldProtocol,
    PublishedBand,
    deviations,
    find_protocol,
)

app = App(
    name="protocols",
    help_epilogue="""Examples:
  ssil protocols
  ssil run --protocol cifar100-b0-10 --method icarl --out runs/icarl
  ssil run --protocol cifar100-b0-10 --method wa --epoch-scale 0.1 --out runs/wa""",
)


@app.default
def protocols(*, json: Json = False) -> None:
    """List the protocols of published tables, with their accuracies.

    The last number of a name is the number of classes of a task. Compare a run with the band: tables differ by several
    points on nominally the same protocol.
    """
    if json:
        for protocol in PROTOCOLS.values():
            bands = [{**asdict(band), "source": band.source} for band in protocol.published]
            json_line(**asdict(protocol) | {"schedule": SCHEDULE, "published": bands, "sources": SOURCES})
        return
    listed = table("protocol", "classes", "network", "class order", "exemplars", words=4)
    listed.columns[0].no_wrap = True
    for protocol in PROTOCOLS.values():
        listed.add_row(*_row(protocol))
    console().print(listed)
    for protocol in PROTOCOLS.values():
        _print_published(protocol)
    console().print("", *[f"{name}: {source}" for name, source in SOURCES.items()], sep="\n")


def about_protocol(name: str, settings: RunConfig) -> str:
    """Return the line that says whether a run follows its protocol to the letter."""
    found = deviations(find_protocol(name), settings)
    differs = f"changed, so it can't be compared with published accuracies: {'; '.join(found)}"
    return f"protocol {name}{', ' + differs if found else ''}"


def _row(protocol: FieldProtocol) -> tuple[str, ...]:
    settings = protocol.settings
    memory = f"{settings['memory']} by {settings['selection']}"
    return protocol.name, protocol.title, settings["backbone"], settings["class_order"], memory


def _print_published(protocol: FieldProtocol) -> None:
    if not protocol.published:
        return
    title = f"{protocol.name}: published accuracies in percent"
    listed = table("method", "source", "band of averages", "average", "last", words=2, title=title)
    for band in protocol.published:
        average, last = (f"{value:.1f}" for value in band.survey) if band.survey else ("-", "-")
        listed.add_row(band.method, band.source, _range(band), average, last)
    console().print("", listed, sep="\n")


def _range(band: PublishedBand) -> str:
    return f"{band.low:g} to {band.high:g}" if band.low < band.high else "-"
