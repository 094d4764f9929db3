"""A single word of a text, read as the name of a file, a symbol, a package or an address.

A word is told by its form alone.  When in doubt it names nothing.
"""

import re

from projections.entity import NAME_CHARACTERS_MAX, Entity, Kind
from projections.entity_lists import (
    AMBIGUOUS_EXTENSIONS,
    BARE_HOST_ENDINGS,
    DOT_FILES,
    DUNDERS,
    EXTENSIONS,
    FOLDERS,
    HOST_ENDINGS,
    KEYWORDS,
    METHODS,
    MODULES,
    PRODUCTS,
    ROOTS,
    SELVES,
    SURNAME_STARTS,
    WHOLE_FILES,
)

PARTS_MAX = 12
# Letters that two parts of snake_case have at least, and how many of a file's name tell it.
PART_LETTERS_MIN = 2
STEM_LETTERS_MIN = 2

_SCOPED = re.compile(r"(@[a-z][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*)(?:[/@].*)?", re.ASCII)
_VERSIONED = re.compile(r"([a-z][a-z0-9._-]+)@(?:\d+(?:\.\w+)+|latest)", re.ASCII)
_LINE = re.compile(r":\d+(?:[:-]\d+)?\Z")
_DRIVE = re.compile(r"[A-Za-z]:/")
_SEGMENT = re.compile(r"(?!\.{3})[\w.@+~-]+")
_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+", re.ASCII)
_STEM = re.compile(r"[\w.-]*\w")
_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def entity_of_word(word: str, *, is_called: bool = False, is_code: bool = False) -> Entity | None:
    """What the word names.

    ``is_called``: empty parentheses follow it.  ``is_code``: it was marked as code.
    """
    word = word.rstrip(".:-+#~@$")
    if not word or len(word) > NAME_CHARACTERS_MAX or word[0] in "-:#+$" or "$" in word:
        return None
    if "@" in word:
        return _package(word)
    if "::" in word:
        return _scoped_symbol(word)
    if "/" in word or "\\" in word:
        return _path(word, is_code=is_code)
    bare = _LINE.sub("", word)
    if "." in bare:
        return _dotted(bare, is_called=is_called, is_code=is_code)
    if word in WHOLE_FILES:
        return Entity(Kind.FILE, word, word)
    return _identifier(word, is_called=is_called, is_code=is_code)


def is_telling(name: str) -> bool:
    """Whether an identifier is one by its form: snake_case, CamelCase, a name of Python's own."""
    if "_" in name:
        return _is_snake(name)
    return _is_camel(name)


def file_name_of(path: str) -> str | None:
    """A path in the form that all ways to write it share; None when nothing is left of it."""
    path = path.replace("\\", "/")
    segments: list[str] = []
    for segment in path.split("/"):
        if segment in ("", "."):
            continue
        if segment == ".." and segments and segments[-1] != "..":
            segments.pop()
        else:
            segments.append(segment)
    if not any(map(str.isalnum, "".join(segments))):
        return None
    return ("/" if path.startswith("/") else "") + "/".join(segments)


def address_of(host: str, path: str) -> str | None:
    """An address without its scheme, in the form that all ways to write it share."""
    host = host.rpartition("@")[2].lower()
    name, _, port = host.partition(":")
    name = name.removeprefix("www.").rstrip(".")
    if not any(map(str.isalnum, name)):
        return None
    if port not in ("", "80", "443"):
        name = f"{name}:{port}"
    for sign in "?#":
        path = path.partition(sign)[0]
    return name + path.rstrip("/")


def _package(word: str) -> Entity | None:
    if found := _SCOPED.fullmatch(word):
        name = found[1].rstrip(".-")
        return Entity(Kind.PACKAGE, name, name)
    if found := _VERSIONED.fullmatch(word):
        return Entity(Kind.PACKAGE, re.sub(r"[-_.]+", "-", found[1]), found[1])
    return None


def _scoped_symbol(word: str) -> Entity | None:
    first, *others = word.split("::")
    if "." in first:
        # A test's name: its file is told apart from it, and is what others speak of.
        return _path(first, is_code=False) if "/" in first else _file(first)
    parts = [first, *others]
    if len(parts) > PARTS_MAX or not all(map(str.isidentifier, parts)):
        return None
    return Entity(Kind.SYMBOL, ".".join(parts), word)


# -- Paths ----------------------------------------------------------------------------------------


def _path(word: str, *, is_code: bool) -> Entity | None:
    written = _LINE.sub("", word.partition("#")[0])
    path = written.replace("\\", "/")
    has_drive = _DRIVE.match(path) is not None
    segments = [segment for segment in path[2 * has_drive :].split("/") if segment]
    if not segments or not all(map(_SEGMENT.fullmatch, segments)):
        return None
    host = segments[0]
    if not has_drive and path.startswith(host) and _is_host(host, HOST_ENDINGS):
        address = address_of(host, path[len(host) :])
        return None if address is None else Entity(Kind.URL, address, written)
    if not _is_path(path, segments, has_drive=has_drive, is_code=is_code):
        return None
    name = file_name_of(path)
    return None if name is None else Entity(Kind.FILE, name, written)


def _is_path(path: str, segments: list[str], *, has_drive: bool, is_code: bool) -> bool:
    *folders, last = segments
    if any(_file(folder) for folder in folders):
        return False  # two files, or none
    if _is_file(last, in_path=bool(folders) or path != last):
        return True
    if not any(any(map(str.isalpha, segment)) for segment in segments):
        return False
    if has_drive or path.startswith(("./", "../", "~/")):
        return len(segments) > 1
    if path.startswith("/"):
        return segments[0] in ROOTS and len(segments) > 1
    if segments[0] in FOLDERS:
        return len(segments) > 1 or path.endswith("/")
    return is_code and path.endswith("/") and all(len(segment) > 1 for segment in segments)


def _file(word: str) -> Entity | None:
    """The word as the name of a file without its folders."""
    if not _is_file(word, in_path=False):
        return None
    return Entity(Kind.FILE, word, word)


def _is_file(name: str, *, in_path: bool) -> bool:
    if name in DOT_FILES or name in WHOLE_FILES:
        return True
    stem, _, extension = name.rpartition(".")
    if not any(map(str.isalpha, stem)) or not _STEM.fullmatch(stem):
        return False
    if name.lower() in PRODUCTS:
        return False
    if extension in AMBIGUOUS_EXTENSIONS:
        return in_path or _is_written_like_a_file(stem)
    return extension in EXTENSIONS or (extension.lower() in EXTENSIONS and stem.isupper())


def _is_written_like_a_file(stem: str) -> bool:
    if len(stem) < STEM_LETTERS_MIN or stem in MODULES or stem in SELVES or "." in stem:
        return False
    return stem.islower() and stem[0].isalpha()


# -- Symbols --------------------------------------------------------------------------------------


def _dotted(word: str, *, is_called: bool, is_code: bool) -> Entity | None:
    if not is_called and (file := _file(word)):
        return file
    if not is_called and _is_host(word, BARE_HOST_ENDINGS):
        return Entity(Kind.URL, word.removeprefix("www."), word)
    parts = word.split(".")
    if parts[-1].lower() in METHODS and parts[0] not in MODULES:
        parts.pop()
        word, is_called = ".".join(parts), False
    if parts[0] in SELVES:
        name = ".".join(parts[1:])
        return Entity(Kind.SYMBOL, name, word) if name and _is_attribute(parts[-1]) else None
    if len(parts) == 1:
        return _identifier(word, is_called=False, is_code=False)
    if len(parts) > PARTS_MAX or not all(map(str.isidentifier, parts)):
        return None
    if all(len(part) == 1 for part in parts) or word.lower() in PRODUCTS:
        return None
    is_marked = (is_called or is_code) and len(parts[-1]) > 1
    of_module = parts[0] in MODULES and all(part.islower() for part in parts[1:])
    if is_marked or of_module or any(map(is_telling, parts)):
        return Entity(Kind.SYMBOL, word, word)
    return None


def _is_attribute(name: str) -> bool:
    return name.isidentifier() and len(name) > 1


def _identifier(word: str, *, is_called: bool, is_code: bool) -> Entity | None:
    if not word.isidentifier():
        return None
    if len(word) > 2 and word.startswith("_") and word.endswith("_") and not _is_dunder(word):
        word = word.strip("_")
    is_marked = (is_called or is_code) and _is_attribute(word) and word.lower() not in KEYWORDS
    if is_marked or is_telling(word):
        return Entity(Kind.SYMBOL, word, word)
    return None


def _is_snake(name: str) -> bool:
    if _is_dunder(name):
        return True
    parts = [part for part in name.split("_") if len(part) >= PART_LETTERS_MIN]
    return sum(any(map(str.isalpha, part)) for part in parts) > 1


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name[2:-2] in DUNDERS


def _is_camel(name: str) -> bool:
    if not name.isascii() or name[1:].islower() or name.isupper() or name.lower() in PRODUCTS:
        return False
    humps = _HUMPS.findall(name)
    if not humps or len("".join(humps)) < len(name):
        return False
    if len(humps[0]) == 1 or humps[0] in SURNAME_STARTS:
        return False
    if humps[-1][1:] == "s":
        humps.pop()  # of an abbreviation there are several
    return any(hump[0].isupper() and hump[1:].islower() for hump in humps[1:])


def _is_host(word: str, endings: frozenset[str]) -> bool:
    return word.rpartition(".")[2] in endings and _HOST.fullmatch(word) is not None
