"""A small language model on this machine: its weights, and one server that all runs of a user share.

    weights.py    the model file: fetched once, checked, kept in the user's cache
    server.py     the clients' side: find the running server, start one when there is none, stop it
    serve.py      the server process itself, the only module that imports xllamacpp
    record.py     what the two sides agree on: the files in `<home>/local-model` and their contents

The model (SmolLM2, 135M parameters) writes plain text and JSON held to a schema. It does not call tools.
In: a request for the embedded model.
Out: the address of a server on loopback that answers it.
Never: loads the weights into the process that asks.

Importing this package costs next to nothing; each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from subagents_nb.local_model.model_errors import LocalModelError

if TYPE_CHECKING:
    from subagents_nb.local_model.server import available, ensure, stop
    from subagents_nb.local_model.server_record import WINDOW_TOKENS, Endpoint
    from subagents_nb.local_model.weights import install, uninstall, weights_path

_MODULES = {
    "WINDOW_TOKENS": "server_record",
    "Endpoint": "server_record",
    "available": "server",
    "ensure": "server",
    "install": "weights",
    "stop": "server",
    "uninstall": "weights",
    "weights_path": "weights",
}

__all__ = [
    "WINDOW_TOKENS",
    "Endpoint",
    "LocalModelError",
    "available",
    "ensure",
    "install",
    "stop",
    "uninstall",
    "weights_path",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
