"""The notebook of what an agent ran: `steps/N/python.ipynb`, valid nbformat 4.5, written anew after each cell."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from subagents_nb.runner.engines.kernel.cell_output import Cell
from subagents_nb.store.files.disk import Disk

NOTEBOOK = "python.ipynb"
_MOST_BYTES = 5_000_000
_LEFT_OUT = {"output_type": "stream", "name": "stdout", "text": "(left out: the notebook would be too large)\n"}


class Record:
    """The cells so far. Beyond five megabytes the oldest outputs are left out, then the oldest cells."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._cells: list[str] = []
        self._bare: list[str] = []  # the same cells without their outputs

    def add(self, cell: Cell) -> None:
        """Write down a cell.

        Raises:
            OSError: the disk refuses.
        """
        about = {"id": f"cell-{len(self._cells)}", "cell_type": "code", "metadata": {}, "source": cell.code}
        whole = {**about, "execution_count": cell.number, "outputs": cell.outputs}
        bare = {**about, "execution_count": cell.number, "outputs": [_LEFT_OUT] if cell.outputs else []}
        self._cells.append(_json(whole))
        self._bare.append(_json(bare))
        self._disk.replace(self._path, self._content(), durable=False)

    def _content(self) -> bytes:
        kept: list[str] = []
        room = _MOST_BYTES
        for whole, bare in zip(reversed(self._cells), reversed(self._bare), strict=True):
            chosen = whole if len(whole) < room else bare
            room -= len(chosen)
            if room < 0:
                break
            kept.append(chosen)
        version = ".".join(map(str, sys.version_info[:3]))
        about = {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": version},
        }
        cells = ",\n".join(reversed(kept))
        tail = f'"metadata": {json.dumps(about)}, "nbformat": 4, "nbformat_minor": 5'
        return f'{{"cells": [{cells}],\n{tail}}}\n'.encode()


def _json(value: Any) -> str:
    return json.dumps(value)
