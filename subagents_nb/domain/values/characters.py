"""Texts that UTF-8 can't say: half characters of an answer, bytes of a file name that is in another encoding."""

from __future__ import annotations

from typing import Any


def sayable(text: str) -> str:
    """Return the text with a replacement sign for each half character; two halves of one become that one.

    Such a text can't be sent, stored or shown: https://docs.python.org/3/library/codecs.html#surrogateescape
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def loose(path: str) -> str:
    """Return a path as those systems see it that tell neither letters of two cases nor two ways to write one."""
    import unicodedata  # an extension: only who denies a path needs it

    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def sayable_data(value: Any) -> Any:
    """Return JSON data of which every text, keys too, is sayable; what is not JSON stays as it is."""
    match value:
        case str():
            return sayable(value)
        case dict():
            return {sayable_data(key): sayable_data(one) for key, one in value.items()}
        case list():
            return [sayable_data(one) for one in value]
        case _:
            return value
