"""A set of images packed into a few large files, which open at once and are read without copying."""

from ssil.data.store.faults import check
from ssil.data.store.layout import is_store
from ssil.data.store.read import Packed, Store, open_store
from ssil.data.store.write import prepare

__all__ = ["Packed", "Store", "check", "is_store", "open_store", "prepare"]
