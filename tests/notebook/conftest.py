"""One kernel for the many tests that leave it as they found it, and kernels of their own for those that do not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from kernels import Kernel, dismiss_supervisors, end_runs
from support import take_away


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    kernel.ok("%load_ext subagents_nb")
    yield kernel
    kernel.close()
    end_runs(kernel.home)
    dismiss_supervisors(kernel.home)


@pytest.fixture
def kernel(_shared: Kernel, tmp_path: Path) -> Iterator[Kernel]:
    """A kernel with the extension loaded, no variables and no runs; what it showed and had to tell is forgotten."""
    if _shared.home.root.exists():
        take_away(_shared.home, tmp_path / "of the test before")
    # A %reset searches for garbage, twice and longer than most tests take. What stands now is left out of it.
    _shared.ok("import gc\ngc.freeze()\n%reset -f")
    _shared.ok("from subagents_nb.notebook.views.notices import NOTICES\nNOTICES.close()\ndel NOTICES")
    _shared.log.clear()
    yield _shared
    end_runs(_shared.home)


@pytest.fixture
def new_kernel(_shared: Kernel, tmp_path: Path) -> Iterator[Callable[..., Kernel]]:
    """Start kernels over one store, which is empty; they are the test's own to interrupt, restart and kill.

    It is the store of the kernel that others share: a supervisor takes longer to come up than a kernel.
    """
    started: list[Kernel] = []
    if _shared.home.root.exists():
        take_away(_shared.home, tmp_path / "of the test before")

    def start(*, load: bool = True, **environ: str) -> Kernel:
        kernel = Kernel(tmp_path, store=_shared.home.root, **environ)
        started.append(kernel)
        if load:
            kernel.ok("%load_ext subagents_nb")
        return kernel

    yield start
    for kernel in started:
        kernel.close()
    end_runs(_shared.home)
