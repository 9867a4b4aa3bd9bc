"""Which protocol of published tables a finished run follows, and the accuracies that were published for its method."""

from typing import Any

from ssil.benchmark.record import Record
from ssil.benchmark.run_identity import identity
from ssil.benchmark.run_setup import expected_record
from ssil.core.errors import UserError
from ssil.reporting.sections import AccuracyBand
from ssil.reproduction.field_protocols import PROTOCOLS, SURVEY, FieldProtocol, PublishedBand, protocol_config

ROW_OF = {"ft": "replay"}
"""Methods whose row in published tables has another name."""


def protocol_of(record: Record) -> FieldProtocol | None:
    """Return the protocol that a run follows to the letter, whatever its method, seed and precision; None if none."""
    return next((protocol for protocol in PROTOCOLS.values() if _follows(record, protocol)), None)


def _follows(record: Record, protocol: FieldProtocol) -> bool:
    config = record.config
    given: dict[str, Any] = {name: config[name] for name in ("method", "seed", "precision") if name in config}
    try:
        configured, wanted = expected_record(protocol_config(protocol, given), record)
        return identity(record, configured) == identity(wanted, configured)
    except UserError:  # a method from a file that is gone, or settings that no longer exist
        return False


def published_band(record: Record) -> AccuracyBand | None:
    """Return the accuracies that were published for a run's protocol and method; None if there are none."""
    protocol = None if "scorer" in record.config or "chain" in record.config else protocol_of(record)
    row = ROW_OF.get(record.config["method"], record.config["method"])
    bands = [band for band in protocol.published if band.method == row] if protocol else []
    return AccuracyBand(bands[0].low, bands[0].high, _sentence(protocol, bands[0])) if protocol and bands else None


def _sentence(protocol: FieldProtocol, band: PublishedBand) -> str:
    """Return the band in words, with its sources.

    >>> _sentence(PROTOCOLS["cifar100-b0-10"], PublishedBand("eeil", 61.0, 63.0))
    'published averages of eeil with cifar100-b0-10: 61 to 63 in several tables'
    """
    ranged = f"{band.low:g} to {band.high:g} in several tables" if band.low < band.high else None
    survey = f"{band.survey[0]:g} and {band.survey[1]:g} at the end in {SURVEY}" if band.survey else None
    return f"published averages of {band.method} with {protocol.name}: {', '.join(filter(None, (ranged, survey)))}"
