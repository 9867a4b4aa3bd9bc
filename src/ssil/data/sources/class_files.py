"""From the files of each class to a listing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ssil.core.errors import UserError
from ssil.data.image_index import Files, ImageIndex, Labels, Preprocessing, Remark, plain
from ssil.data.sources.class_selection import pick

Groups = Mapping[str, Sequence[str]]
"""The files of each class: paths relative to a root."""

OWN = Preprocessing(64, augment="auto")
"""How pictures of one's own are seen, if nothing else is wished for."""


def gather(
    name: str,
    root: Path,
    look: Preprocessing,
    train: Groups,
    test: Groups | None = None,
    titles: Mapping[str, str] | None = None,
    remarks: Sequence[Remark] = (),
) -> ImageIndex:
    """The files of all classes, in the order of `train`. Where `test` is None, the test part is left open.

    `titles` are names to show in place of what the groups are called, which then become the keys.
    """
    called = tuple(dict.fromkeys([*train, *(test or {})]))
    sizes, files = [], []
    for groups in (train, test or {}):
        members = [groups.get(one, ()) for one in called]
        sizes.append([len(group) for group in members])
        files += [file for group in members for file in group]
    labels = np.concatenate([np.repeat(np.arange(len(called)), size) for size in sizes])
    tested = None if test is None else np.arange(len(labels)) >= sum(sizes[0])
    shown = called if titles is None else distinct(called, titles)
    return complete(
        ImageIndex(
            plain(name),
            Files(root, tuple(files)),
            labels,
            tuple(map(plain, shown)),
            look,
            tested,
            tuple(remark._replace(path=plain(remark.path)) for remark in remarks),
            () if titles is None else tuple(map(plain, called)),
        )
    )


def distinct(keys: Sequence[str], titles: Mapping[str, str]) -> tuple[str, ...]:
    """A title each; with the key where two would be the same but for case, and the key alone where there is none.

    >>> distinct(["n1", "n2", "n3", "n4"], {"n1": "crane", "n2": "tench", "n3": "crane"})
    ('crane (n1)', 'tench', 'crane (n3)', 'n4')
    """
    count = Counter(titles.get(key, key).casefold() for key in keys)
    named = ((key, titles.get(key, key)) for key in keys)
    return tuple(f"{title} ({key})" if count[title.casefold()] > 1 else title for key, title in named)


def complete(listing: ImageIndex) -> ImageIndex:
    """The listing without classes that have nothing to learn from; remarks tell of those and of other odd classes."""
    learnt, tests = _counts(listing)
    if not learnt.any():
        raise UserError(f"dataset: {listing.name} has no files to learn from; add some to each class")
    kept = pick(listing, learnt.nonzero()[0].tolist())
    if len(set(kept.classes)) < len(kept.classes):
        ((name, _),) = Counter(kept.classes).most_common(1)
        raise UserError(f"dataset: {listing.name} has two classes called {name!r}; rename one of them")
    remarks = [_unlearnt(listing.classes[label], int(tests[label])) for label in (learnt == 0).nonzero()[0]]
    if listing.tested is not None:
        remarks += [_untested(kept.classes[label]) for label in (tests[learnt > 0] == 0).nonzero()[0]]
    return replace(kept, remarks=(*listing.remarks, *remarks, *_alike(kept.classes)))


def _counts(listing: ImageIndex) -> tuple[Labels, Labels]:
    """How many images of each class are for training, and for testing."""
    tested = np.zeros(len(listing), dtype=bool) if listing.tested is None else listing.tested
    learnt, tests = (np.bincount(listing.labels[which], minlength=len(listing.classes)) for which in (~tested, tested))
    return learnt, tests


def _unlearnt(name: str, tests: int) -> Remark:
    lost = f"; its test files ({tests:,}) are left out" if tests else ""
    return Remark(name, f"class {name!r} has no files to learn from{lost}", left_out=bool(tests))


def _untested(name: str) -> Remark:
    return Remark(name, f"class {name!r} has no files to test on", left_out=False)


def _alike(names: Sequence[str]) -> list[Remark]:
    """Remarks on classes that may be one, spelt differently."""
    seen: dict[str, str] = {}
    pairs = ((seen.setdefault(name.casefold(), name), name) for name in names)
    return [
        Remark(name, f"classes {other!r} and {name!r} differ by case only", left_out=False)
        for other, name in pairs
        if other != name
    ]
