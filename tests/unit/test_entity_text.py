"""What a text names, and above all what it does not."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.entity import Entity, Kind, entity_id_of
from projections.entity_text import ENTITIES_MAX, entities_of

MIB = 2**20
LINEAR_SECONDS_MAX = 5


def named(text):
    return [f"{entity.kind} {entity.name}" for entity in entities_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The bug is in src/http/parse_header.py:42.", ["file src/http/parse_header.py"]),
        ("see ./src/a.py, src/a.py and src//x/../a.py", ["file src/a.py"]),
        ("I edited `README.md` and C:\\work\\App.cs", ["file README.md", "file C:/work/App.cs"]),
        (
            "look at /etc/hosts, ~/notes and ../lib/",
            ["file /etc/hosts", "file ~/notes", "file ../lib"],
        ),
        ("the tests are in `tests/unit/`", ["file tests/unit"]),
        ("Dockerfile and .gitignore say so", ["file Dockerfile", "file .gitignore"]),
        ("tests/test_a.py::test_it failed", ["file tests/test_a.py"]),
        ("main.c and src/util.h", ["file main.c", "file src/util.h"]),
        ("parse_header raises ValueError", ["symbol parse_header", "symbol ValueError"]),
        ("call os.path.join() or self.max_depth", ["symbol os.path.join", "symbol max_depth"]),
        ("HTTPServer.serve_forever is called", ["symbol HTTPServer.serve_forever"]),
        ("`retry` is never called; serve() is", ["symbol retry", "symbol serve"]),
        (
            "std::sort, __init__ and MAX_SIZE",
            ["symbol std.sort", "symbol __init__", "symbol MAX_SIZE"],
        ),
        ("`decode(state, topic)` fails", ["symbol decode"]),
        ("np.random.seed was set", ["symbol np.random.seed"]),
        ("@scope/name@2.1.0 and react@18.2.0", ["package @scope/name", "package react"]),
        ("so pip install Ruamel.YAML fixes it", ["package ruamel-yaml"]),
        ("`pip install -U numpy pandas[all]>=2`", ["package numpy", "package pandas"]),
        ("npm i @types/node, then go on", ["package @types/node"]),
        ("pinned to psycopg[binary]==3.2.1", ["package psycopg"]),
        (
            "import numpy as np, json\nfrom a_b.c import load_it",
            ["package numpy", "package json", "package a-b", "symbol a_b.c", "symbol load_it"],
        ),
        ("import x from 'left-pad/lib'\nrequire('node:fs')", ["package left-pad", "package fs"]),
        ("(see https://Example.com:443/a/b/?q=1#top).", ["url example.com/a/b"]),
        ("[it](http://www.x.org/y), github.com/o/r", ["url x.org/y", "url github.com/o/r"]),
        ("https://user:secret@host.io/p_(q)", ["url host.io/p_(q)"]),
        (
            'the "Thought  Ledger" of “Acme Corp of York”',
            ["name thought ledger", "name acme corp of york"],
        ),
        ('on "Apollo 11"', ["name apollo 11"]),
        ("ｓｒｃ／ａ.ｐｙ", ["file src/a.py"]),
        ("größe_max und Straße_nr", ["symbol größe_max", "symbol Straße_nr"]),
    ],
)
def test_what_is_named(text, expected):
    assert named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The quick brown fox jumps over the lazy dog before every meal.",
        "Thus, a maximum of 1245 pounds / 15 pounds/box = <<1245/15=83.0>>83 boxes.",
        "either/or, he/she, 10 km/h, 24/7, 1/2 and input/output",
        "i.e. this, e.g. that, U.S. and p.m., vs. Mr.Smith. And so on.",
        "10 - 8 = 2 (left: 2 11), v4. filer, h1. ____",
        "version 1.2.3, v2.0, 3.14 and 192.168.0.1",
        "It ended.Then it began.So what",
        "Node.js, Vue.js, GitHub, JavaScript and PostgreSQL",
        "McDonald, LeBron and iPhone; PhDs, APIs, URLs, pH, mRNA",
        "x_1, a_i, _emphasis_, __bold__, *so* it goes",
        "if x==1.5 and (rate==2.5)",
        "a well-known step-by-step state-of-the-art --flag -x",
        'he said "Yes", "No", "I see what you mean" and "Step 3"',
        '<img alt="Coverage Status">',
        "ada@example.com, @ada, #123, $HOME/x.py, **/*.py",
        "`True`, `None`, `if x`, `git status`, `-v`, `42`, ` `",
        "the list.append(x), len(), print(x) and items.sort()",
        "GET /users/list and POST /orders/{id}/lines.json",
        "import the data from there; from there import taxes is due",
        "we pip install and then it fails; pip install -r requirements",
        "a link_ and `documentation`_ of it",
        "\\frac{a}{b} \\times \\text{m}",
        "postgresql://u:p_w@h/d_b",
    ],
)
def test_what_names_nothing(text):
    assert named(text) == []


def test_an_entity_is_told_once_where_it_is_first_and_as_it_is_written_there():
    found = entities_of("x_value_max, then ./src/a.py and src/a.py and `x_value_max`")

    assert found == [
        Entity(Kind.SYMBOL, "x_value_max", "x_value_max"),
        Entity(Kind.FILE, "src/a.py", "./src/a.py"),
    ]


def test_a_password_in_an_address_is_not_kept():
    (entity,) = entities_of("https://ada:secret@example.com/a")

    assert "secret" not in str(entity)


def test_what_something_is_called_for_short():
    short = {
        entity.name: entity.short
        for entity in entities_of("src/a.py os.path.join() @scope/name https://x.org/y/z")
    }

    assert short == {
        "src/a.py": "a.py",
        "os.path.join": "join",
        "@scope/name": "name",
        "x.org/y/z": "x.org",
    }


def test_an_id_is_of_a_tenant_a_kind_and_a_name():
    entity = Entity(Kind.FILE, "a.py", "a.py")

    ids = {
        entity_id_of("t", entity),
        entity_id_of("u", entity),
        entity_id_of("t", entity._replace(kind=Kind.SYMBOL)),
        entity_id_of("t", entity._replace(name="b.py")),
    }

    assert len(ids) == 4
    assert entity_id_of("t", entity._replace(written="./a.py")) in ids


@given(st.text(alphabet=st.sampled_from("aZ_1./\\:@`\"'()[]#=~ \n-$<>é\u0301\u0600\ufdfa\0")))
def test_any_text_is_read_and_what_is_found_is_bounded_and_stays_itself(text):
    for entity in entities_of(text):
        assert entity.name
        assert len(entity.name) <= 2 * 200
        assert "\0" not in entity.name + entity.written
        assert entity.short


@given(st.text())
def test_any_text_of_any_letters_is_read(text):
    entities_of(text)


def test_of_very_many_entities_the_first_are_told():
    found = named(" ".join(f"file_number_{chr(97 + n % 26)}{n}.py" for n in range(1_000)))

    assert len(found) == ENTITIES_MAX
    assert found[0] == "file file_number_a0.py"


@pytest.mark.parametrize(
    "part",
    [
        *(
            "a",
            "/",
            ".",
            "`",
            "`x",
            '"A ',
            "a_",
            "a/",
            "aA",
            ":1",
            "http://",
            "::",
            "@a/",
            "\ufdfa",
        ),
        *(
            "http://a" + ")" * 380 + " ",
            "pip install ",
            "aaa.",
            "import a,",
            "import " + "x" * 190 + "\n",
        ),
        *("export " + "x from " * 30 + "\n", "a\u0301", "=" * 9, "_" * 99 + " ", "a==1.", "../"),
    ],
    ids=lambda part: repr(part[:12]),
)
def test_a_long_text_takes_no_longer_than_its_length(part):
    # Far above what it takes, which is some hundredths of a second, and far below a square of it.
    start = time.process_time()

    entities_of(part * (MIB // len(part)))

    assert time.process_time() - start < LINEAR_SECONDS_MAX
