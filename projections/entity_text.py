"""The entities of a text: what it names, precise rather than many.

The text is gone through once for each way to name something.  What was read is blanked, so that
no part of it is read again as something else.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from projections.entity import NAME_CHARACTERS_MAX, Entity, Kind
from projections.entity_lists import NO_PACKAGES, NUMBERED, SMALL_WORDS, WHOLE_FILES
from projections.entity_words import address_of, entity_of_word
from projections.normal import nfkc
from projections.text import shown

# What comes after so many characters of a text is not looked at, nor are further entities.
TEXT_CHARACTERS_MAX = 65_536
ENTITIES_MAX = 64
QUOTED_WORDS_MAX = 5
ADDRESS_SCHEMES = frozenset(("http", "https", "ws", "wss", "ftp", "git", "ssh"))

FLAGS_WITH_VALUES = frozenset(
    ("-r", "-c", "-e", "-p", "-t", "--group", "--requirement", "--index-url")
)

# No repetition is followed by what it could have taken itself, or it is bounded: linear time.
_ADDRESS = re.compile(r"(?<![\w+.-])([A-Za-z][A-Za-z0-9+.-]{1,20})://([^\s<>\"'`|\\^{}]+)")
_FENCE = re.compile(r"```[\w+-]{0,20}")
# With an underscore beside it, it is a link of reStructuredText.
_CODE = re.compile(r"(?<!_)`([^`\n]{1,200})`(?!_)")
_INSTALL = re.compile(
    r"(?<![\w-])(?:(?:pip3?|pipx|conda|mamba|gem|npm|pnpm|bun|cargo)[ ]{1,3}(?:install|i)"
    r"|(?:poetry|uv|yarn|npm|pnpm|bun|cargo)[ ]{1,3}add)[ \t]{1,4}([^\n;|&`]{1,300})"
)
_PIN = re.compile(
    r"(?<![\w.@/\\-])([A-Za-z][\w.-]{2,60})(?:\[[\w,-]{0,60}\])?(?:==|~=)\d{1,6}(?:\.[\w*]{1,20}){1,6}",
    re.ASCII,
)
_IMPORT = re.compile(
    r"^[ \t]{0,40}import[ ]([A-Za-z_][\w.]{0,80}(?:[ ]as[ ]\w{1,40})?"
    r"(?:,[ ]?[A-Za-z_][\w.]{0,80}(?:[ ]as[ ]\w{1,40})?){0,20})(?=[ ]{0,8}(?:[#;]|$))",
    re.ASCII | re.MULTILINE,
)
_FROM = re.compile(
    r"^[ \t]{0,40}from[ ]([A-Za-z_][\w.]{0,80})(?=[ ]import[ ][\w*(])", re.ASCII | re.MULTILINE
)
_REQUIRE = re.compile(
    r"(?:^[ \t]{0,40}(?:import|export)[ ](?:[^\n'\"]{1,200}[ ]from[ ])?|\brequire\()"
    r"['\"]([^'\"\n]{1,120})['\"]",
    re.MULTILINE,
)
_QUOTED = re.compile(r"(?<![\w=(\[])[\"“«](?=[^\W\d_a-z])([^\"“”«»\n]{3,80})(?<=\w)[\"”»](?!\w)")
_WORD = re.compile(r"[\w.~@/\\:$+#-]{2,}")
_SPEC = re.compile(r"(@?[A-Za-z0-9][\w.-]*(?:/[\w.-]+)?)(\[[\w,-]*\])?([=<>!~@^].*)?", re.ASCII)
_NPM = re.compile(r"(?:@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*", re.ASCII)
# A path that goes on before the word is not the path it seems to be.
_CUT_OFF = frozenset(")]}>*%")
_COMPARED = ("if", "elif", "while", "assert", "and", "or", "not", "return")

Found: TypeAlias = tuple[int, Entity]


def entities_of(text: str) -> list[Entity]:
    """The entities of a text, each once, in the order of their first appearance."""
    text = nfkc(shown(text[:TEXT_CHARACTERS_MAX]))[:TEXT_CHARACTERS_MAX]
    found: list[Found] = []
    if "://" in text:
        text = _blanked(_ADDRESS, text, found, _addresses)
    if "`" in text:
        text = _FENCE.sub(_blank, text)
        text = _blanked(_CODE, text, found, _code)
    _scan(text, found, is_code=False)
    found.sort(key=lambda each: each[0])
    unique: dict[tuple[Kind, str], Entity] = {}
    for _, entity in found:
        unique.setdefault((entity.kind, entity.name), entity)
    return list(unique.values())[:ENTITIES_MAX]


def _scan(text: str, found: list[Found], *, is_code: bool) -> None:
    if "install" in text or " add " in text or " i " in text:
        text = _blanked(_INSTALL, text, found, _commands(is_code=is_code))
    if "==" in text or "~=" in text:
        text = _blanked(_PIN, text, found, _pins)
    if "import" in text or "require(" in text:
        text = _blanked(_IMPORT, text, found, _imports)
        text = _blanked(_FROM, text, found, _imports)
        _blanked(_REQUIRE, text, found, _requires)
    if not is_code and ('"' in text or "“" in text or "«" in text):
        _read_names(text, found)
    _read_words(text, found, is_code=is_code)


def _read_words(text: str, found: list[Found], *, is_code: bool) -> None:
    for match in _WORD.finditer(text):
        word, end = match.group(), match.end()
        is_called = text.startswith("()", end)
        # Most words are plain ones.
        is_plain = word[1:].islower() and word.isalpha() and word not in WHOLE_FILES
        if is_plain and not (is_called or is_code):
            continue
        start = match.start()
        if start and word[0] in "/\\.-" and text[start - 1] in _CUT_OFF:
            continue
        if text.startswith(("*", "{", "<"), end) and word[-1] in "/\\":
            continue
        is_call = is_called or (is_code and text.startswith("(", end))
        entity = entity_of_word(word, is_called=is_call, is_code=is_code and " " not in text)
        if entity is not None:
            found.append((start, entity))


def _read_names(text: str, found: list[Found]) -> None:
    for match in _QUOTED.finditer(text):
        written = " ".join(match[1].split())
        if _is_name(written.split(" ")):
            found.append((match.start(1), Entity(Kind.NAME, written.casefold(), written)))


def _is_name(words: list[str]) -> bool:
    """Two words or more, each with a capital but for small ones between, or a number after one."""
    if not 1 < len(words) <= QUOTED_WORDS_MAX:
        return False
    capitals = numbers = 0
    for word in words:
        if word[0].isdigit() and all(map(str.isdigit, word)):
            numbers += 1
        elif word[0].isupper() and all(sign.isalpha() or sign in "'\u2019-." for sign in word):
            capitals += 1
        elif word not in SMALL_WORDS:
            return False
    if numbers and words[0].lower() in NUMBERED:
        return False
    has_lower = any(map(str.islower, "".join(words)))
    return has_lower and (
        capitals > 1 or (capitals == 1 and numbers == 1 and len(words) == 2)
    )  # Apollo 11


# -- What is read and blanked ---------------------------------------------------------------------


def _blanked(
    pattern: re.Pattern[str],
    text: str,
    found: list[Found],
    read: Callable[[re.Match[str], list[Found]], bool | None],
) -> str:
    """The text without what *read* took of it; places stay where they are."""

    def replace(match: re.Match[str]) -> str:
        return match.group() if read(match, found) is False else _blank(match)

    return pattern.sub(replace, text)


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def _addresses(match: re.Match[str], found: list[Found]) -> None:
    scheme, rest = match.groups()
    # A longer one is not shown to anybody whole.
    if scheme.lower() not in ADDRESS_SCHEMES or len(rest) > 2 * NAME_CHARACTERS_MAX:
        return
    rest = _without_end(rest.partition("](")[0])
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    name = address_of(host, rest[len(host) :])
    if name is not None and len(name) <= NAME_CHARACTERS_MAX:
        # Whoever is named before the host may be there with a password.
        shown_host = host.rpartition("@")[2]
        written = f"{scheme}://{shown_host}{rest[len(host) :]}"
        found.append((match.start(), Entity(Kind.URL, name, written[:NAME_CHARACTERS_MAX])))


def _without_end(address: str) -> str:
    """Without the signs of the sentence around it."""
    while address:
        last = address[-1]
        closes = {")": "(", "]": "["}.get(last)
        is_open = closes is not None and address.count(closes) >= address.count(last)
        if is_open or (closes is None and last not in ".,;:!?*_"):
            break
        address = address[:-1]
    return address


def _code(match: re.Match[str], found: list[Found]) -> None:
    inner: list[Found] = []
    _scan(match[1], inner, is_code=True)
    start = match.start(1)
    found.extend((start + place, entity) for place, entity in inner)


def _commands(*, is_code: bool) -> Callable[[re.Match[str], list[Found]], None]:
    def read(match: re.Match[str], found: list[Found]) -> None:
        arguments = iter(match[1].split())
        for argument in arguments:
            if argument.startswith("-"):
                if argument in FLAGS_WITH_VALUES:
                    return
                continue
            spec = _SPEC.fullmatch(argument.strip("\"'").rstrip(".,:)\"'"))
            if spec is None or spec[1].lower() in NO_PACKAGES:
                return
            _add_package(found, match.start(1), spec[1])
            if not is_code and not spec[3]:
                return  # what follows may be the rest of a sentence

    return read


def _imports(match: re.Match[str], found: list[Found]) -> None:
    for imported in match[1].split(","):
        module = imported.split()[0]
        _add_package(found, match.start(1), module.partition(".")[0])
        if "." in module:
            found.append((match.start(1), Entity(Kind.SYMBOL, module, module)))


def _requires(match: re.Match[str], found: list[Found]) -> None:
    module = match[1].removeprefix("node:")
    package = "/".join(module.split("/")[: 2 if module.startswith("@") else 1])
    if _NPM.fullmatch(package):
        _add_package(found, match.start(1), package)


def _pins(match: re.Match[str], found: list[Found]) -> bool:
    before = match.string[max(match.start() - 8, 0) : match.start()]
    words = before.split()
    if before.endswith("(") or (words and before[-1] == " " and words[-1] in _COMPARED):
        return False
    _add_package(found, match.start(), match[1])
    return True


def _add_package(found: list[Found], place: int, written: str) -> None:
    name = written.lower().rstrip(".")
    if not name.startswith("@"):
        name = re.sub(r"[-_.]+", "-", name)
    if len(name) > 1 and name.strip("-@/") and len(name) <= NAME_CHARACTERS_MAX:
        found.append((place, Entity(Kind.PACKAGE, name, written)))
