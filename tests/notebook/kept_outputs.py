"""A plugin beside nbval: what each notebook would hold if it were saved now is written into the folder KEPT_OUTPUTS.

nbval compares what a cell showed at first and drops it. A page goes on: displays are shown anew, other cells' too.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

os.environ.pop("PYTHONPATH", None)  # by which this was found; the kernels are none of ours
KEPT = Path(os.environ.pop("KEPT_OUTPUTS"))
RUNS = Path(os.environ["NOTEBOOKS_STORE"]) / "runs"


class Listening(IPyNbFile):  # type: ignore[misc]
    """A notebook whose cells keep all that their kernel shows."""

    def setup(self) -> None:
        self.shown: list[tuple[int, dict[str, Any]]] = []
        self.at, self.runs_before = 0, _runs()
        super().setup()

    def get_kernel_message(self, timeout: float | None = None, stream: str = "iopub") -> dict[str, Any]:
        message: dict[str, Any] = super().get_kernel_message(timeout=timeout, stream=stream)
        self.shown.append((self.at, message))
        return message

    def teardown(self) -> None:
        super().teardown()
        cells = [cell for cell in self.nb.cells if cell.cell_type == "code"]
        for cell in cells:
            cell.outputs = []
        displays: dict[str, list[Any]] = {}
        for at, message in self.shown:
            content, kind = message["content"], message["msg_type"]
            display_id = content.get("transient", {}).get("display_id")
            if kind == "update_display_data":
                for output in displays.get(display_id, []):
                    output.data, output.metadata = map(nbformat.from_dict, (content["data"], content["metadata"]))
            elif kind in ("display_data", "execute_result", "stream", "error"):
                output = nbformat.v4.output_from_msg(message)
                cells[at].outputs.append(output)
                displays.setdefault(display_id, []).append(output)
        self.nb.metadata["runs"] = len(_runs() - self.runs_before)
        nbformat.write(self.nb, KEPT / self.path.name)


def _runs() -> set[str]:
    return set(os.listdir(RUNS)) if RUNS.is_dir() else set()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Generator[None, list[Any], list[Any]]:
    found = yield
    return [Listening.from_parent(parent, path=file_path) if isinstance(one, IPyNbFile) else one for one in found]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    if isinstance(item, IPyNbCell):
        item.parent.at = item.cell_num
    return (yield)
