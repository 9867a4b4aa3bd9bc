"""The page of a test by a test folder: accuracies with intervals, each class, confusions."""

from pathlib import Path

from ssil.classifier.accuracy import ClassResult
from ssil.classifier.folder_results import FolderResult
from ssil.core.errors import UserError
from ssil.core.files import replacing
from ssil.reporting.pages import render
from ssil.reporting.text_tables import Table

LISTED = 5
"""Images that are named of a pair of classes."""


def folder_page(title: str, folder: Path, result: FolderResult) -> str:
    """Return the whole page."""
    return render(
        "folder.html",
        title=f"{title}, version {result.version}: test",
        folder=folder,
        result=result,
        overall=result.result(),
        groups=_groups(result),
        classes=_classes(result),
        confusions=_confusions(result),
        called=sum(image.unknown for image in result.images),
    )


def write_folder_page(path: Path, title: str, folder: Path, result: FolderResult) -> None:
    """Write the page; raise UserError if the file can't be written."""
    try:
        with replacing(path) as file:
            file.write(folder_page(title, folder, result).encode())
    except OSError as error:
        raise UserError(f"html: {path} can't be written ({error.strerror}); give another file") from None


def _groups(result: FolderResult) -> Table:
    groups = {"all": result.names, "old": result.names[: result.old], "new": result.names[result.old :]}
    rows = [[name, *_cells(result.result(names))] for name, names in groups.items() if result.result(names).total]
    return Table(["classes", "right", "of", "percent", "95 % interval"], rows)


def _classes(result: FolderResult) -> Table:
    worst = sorted(result.classes.items(), key=lambda item: (item[1].percent, -item[1].total))
    return Table(["class", "right", "of", "percent", "95 % interval"], [[name, *_cells(one)] for name, one in worst])


def _confusions(result: FolderResult) -> Table:
    rows = [
        [one.label, one.predicted, ", ".join(Path(name).name for name in one.images[:LISTED]), f"{len(one.images)}"]
        for one in result.confusions()
    ]
    return Table(["class", "taken for", "for example", "images"], rows, words=3)


def _cells(result: ClassResult) -> list[str]:
    return [str(result.correct), str(result.total), f"{result.percent:.0f} %", str(result.interval)]
