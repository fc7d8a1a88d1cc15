from __future__ import annotations

import subagents_nb.catalog as agents


def test_the_door_of_the_room_is_this_wide() -> None:
    assert sorted(agents.__all__) == [
        "AmbiguousAgent",
        "BrokenAgent",
        "SettingsProblem",
        "UnknownAgent",
        "discover",
        "load_settings",
        "parse_agent",
        "project_context",
        "project_root",
        "register_agent",
        "registered_agents",
        "resolve",
        "unregister_agent",
    ]
    assert all(hasattr(agents, name) for name in agents.__all__)
