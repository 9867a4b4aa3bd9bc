"""What an update was given, what was done with it and how long it took, in the words of its page."""

from collections.abc import Iterator

from ssil.classifier.advice.sentences import photos
from ssil.classifier.prediction import Classifier
from ssil.classifier.update_report import UpdateReport, together
from ssil.classifier.version_changes import local_time


def update_facts(report: UpdateReport) -> Iterator[tuple[str, str]]:
    """Yield what the update was given, what was done with it, and how long it took."""
    entry, classifier = report.entry, report.classifier
    new, every = entry.get("new_images", entry.get("pictures")), sum(classifier.image_counts().values())
    if new is not None:
        yield "new photos", f"{new:,}{f'; with those before {every:,} in all' * (every > new)}"
    if together(report.after, report.names).total:
        yield "tried", report.tried()
    if report.advice:
        yield "looked at", f"{photos(report.advice.examined)} of this update, for what would help"
    yield "kept in the model", _kept(classifier)
    if isinstance(seconds := entry.get("seconds"), int | float):
        yield "time it took", _time(float(seconds))
    if entry.get("images"):
        yield "folder", str(entry["images"])
    if entry.get("time"):
        yield "when", local_time(str(entry["time"]))


def _kept(classifier: Classifier) -> str:
    """Return what a model keeps of photos: small copies, and of those that were tried features alone."""
    copies = f"small copies of {photos(sum(map(len, (*classifier.exemplars, *classifier.holdout))))}"
    if classifier.validated is None or not len(classifier.validated):
        return f"{copies}, with which later updates are tried"
    numbers = f"of the {photos(len(classifier.validated))} that were tried a list of numbers each"
    return f"{numbers}, with which later updates are tried; and {copies}"


def technical_line(report: UpdateReport) -> str:
    """Return the method and the network, for those who ask."""
    return report.classifier.settings.described()


def _time(seconds: float) -> str:
    """Return a duration in words.

    >>> _time(8.4), _time(135)
    ('8 seconds', '2 minutes 15 seconds')
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} minute{'s' * (minutes != 1)} {rest} seconds" if minutes else f"{rest} seconds"
