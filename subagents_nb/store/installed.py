"""What the person installed: the folders of installed packages, and what these say of themselves by entry points.

A kernel has the folder of its notebook on the way of imports, so whoever made that could put a package there, or the
metadata of one. Neither counts here, and no code of any package is imported.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

# Where installers put what the person installed. Other folders on the path of imports are whoever's who made them.
_INSTALLED = ("site-packages", "dist-packages")


def installed_folders() -> tuple[str, ...]:
    """Return the folders of installed packages, in the order in which Python looks into them."""
    return tuple(place for place in sys.path if os.path.basename(place) in _INSTALLED and os.path.isabs(place))


def installed_package(name: str) -> Path | None:
    """Return the folder of an installed package; None if there is none."""
    return next((path for one in installed_folders() if (path := Path(one, name)).is_dir()), None)


def entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """Return the entry points of installed packages in a group by their names; of two alike the one found first."""
    found: dict[str, metadata.EntryPoint] = {}
    for one in metadata.distributions(path=list(installed_folders())):
        for point in one.entry_points.select(group=group):
            found.setdefault(point.name, point)
    return found
