"""What a method stores with the exemplars of a model: rows of the memory in training, files beside the images else."""

from collections.abc import Sequence
from dataclasses import replace

from ssil.classifier.image_file import ImageFile, ImagesByClass
from ssil.core.errors import UserError
from ssil.learning.exemplar_values import check_stored, stacked, without_class
from ssil.learning.memory import Memory
from ssil.learning.method import Method


def with_stored_rows(memory: Memory, images: Sequence[ImageFile], method: Method) -> Memory:
    """Return the memory with what the method has stored with its images; raise UserError if that is another's.

    Args:
        memory: The exemplars, as indices of `images`.
        images: The images.
        method: The method, which need not store anything.
    """
    if not method.stored:
        return memory
    kept = [images[index].stored for index in memory.indices.tolist()]
    complete = replace(memory, stored=stacked([read() if read else {} for read in kept]))
    try:
        check_stored(method, complete, len(memory.exemplars))
    except ValueError as error:
        raise UserError(f"model: {error}; delete the files of what is stored, or restore them") from None
    return complete


def exemplar_images(memory: Memory, images: Sequence[ImageFile]) -> ImagesByClass:
    """Return the exemplars as images, with what the memory stores with each; what an image has already, stays."""
    rows = iter(range(len(memory)))

    def with_row(index: int) -> ImageFile:
        row, image = next(rows), images[index]
        values = {name: values[row].clone() for name, values in memory.stored.items()}
        return image.with_stored(values) if values and not image.stored else image

    return tuple(tuple(map(with_row, group.tolist())) for group in memory.exemplars)


def without_stored_class(groups: ImagesByClass, method: Method, label: int) -> ImagesByClass:
    """Return exemplars without what is stored with them about a class."""
    per_class = method.stored.per_class if method.stored else ()

    def changed(image: ImageFile) -> ImageFile:
        return image.with_stored(without_class(image.stored(), per_class, label)) if image.stored else image

    return tuple(tuple(map(changed, group)) for group in groups)
