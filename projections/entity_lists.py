"""What is known by heart: endings of files, and what looks like a name of code and is none.

Fixed lists, for a read model must come out the same whatever Python and machine builds it.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A word that ends so is a file.
EXTENSIONS = _words(
    """
    py pyi pyx ipynb js jsx mjs cjs ts tsx mts cts vue svelte java kt kts scala groovy gradle cpp
    cxx hpp hxx cs fs rs go rb erb php swift lua jl clj cljs ex exs erl hrl hs elm dart sol proto
    graphql sql sqlite md mdx rst adoc txt csv tsv json jsonl ndjson yaml yml toml ini cfg conf
    xml html htm css scss sass less svg png jpg jpeg gif webp pdf docx xlsx pptx parquet sh bash
    zsh fish ps1 bat tf tfvars hcl gz zip tgz bz2 whl jar lock log db patch diff pem crt wasm
    """
)
# With these a word may as well be something else: only a path, or a name no word has, is a file.
AMBIGUOUS_EXTENSIONS = _words(
    """
    c h m r d s go cs rs ex fs less fish bat log lock db diff patch
    """
)
WHOLE_FILES = _words(
    """
    Dockerfile Makefile Gemfile Procfile Jenkinsfile Vagrantfile Rakefile Justfile Pipfile
    """
)
DOT_FILES = _words(
    """
    .gitignore .gitattributes .gitmodules .dockerignore .editorconfig .env .env.local .npmrc
    .nvmrc .bashrc .zshrc .profile .eslintrc .prettierrc .babelrc .pylintrc .flake8 .coveragerc
    .npmignore .htaccess .vimrc
    """
)
# Absolute paths begin with one of these; others are as likely routes of a web server.
ROOTS = _words(
    """
    etc usr var home opt tmp bin sbin lib mnt srv dev proc root Users Volumes
    """
)
# Folders that are named with a slash at the end, or with what is in them.
FOLDERS = _words(
    """
    src node_modules site-packages .github .vscode
    """
)
# Hosts without a scheme end so; the first two also without a path.
HOST_ENDINGS = _words(
    """
    com org net io dev edu gov ai app
    """
)
BARE_HOST_ENDINGS = _words(
    """
    com org
    """
)

# Names of products and people that are written like symbols or files.
PRODUCTS = _words(
    """
    github gitlab bitbucket javascript typescript coffeescript actionscript youtube linkedin
    wordpress paypal fedex macbook airpods devops latex bibtex whatsapp tiktok snapchat chatgpt
    deepmind stackoverflow doordash playstation gameboy powerpoint onedrive onenote duckduckgo
    openai numpy scipy pytorch tensorflow elasticsearch opensearch cloudflare cloudwatch
    sharepoint quickbooks mastercard hubspot salesforce firefox openstack bigquery postgresql
    mongodb airbnb blackberry xbox healthcare datadog deepseek huggingface langchain fastapi
    pagerduty opentelemetry node.js vue.js next.js nuxt.js express.js react.js angular.js ember.js
    backbone.js three.js d3.js chart.js nest.js deno.js p5.js moment.js socket.io asp.net vb.net
    web3.js alpine.js ruamel.yaml pypy
    """
)
SURNAME_STARTS = (
    "Mc",
    "Mac",
    "De",
    "Da",
    "Di",
    "Du",
    "La",
    "Le",
    "Van",
    "Fitz",
    "Ja",
    "Ra",
    "Ta",
    "Ty",
    "O",
)
# Modules whose attributes are told from a sentence without a blank after its point.
MODULES = _words(
    """
    os sys re json math np numpy pd pandas plt torch tf asyncio logging datetime time random
    collections itertools functools subprocess pathlib typing socket threading requests console
    process window document fmt http sqlite3 pickle shutil hashlib string operator heapq bisect
    statistics decimal csv io uuid contextlib dataclasses unittest pytest
    """
)
SELVES = _words(
    """
    self this cls
    """
)
# In code they say nothing of what a thought is about.
KEYWORDS = _words(
    """
    and as assert async await break case catch class const continue def default del do elif else
    enum except export extends false finally fn for from func function global if impl import in
    interface is lambda let match mod mut new nil none nonlocal not null or package pass private
    protected pub public raise return self static struct super switch this throw true try type
    typeof undefined use var void while with yield int str bool float list dict set tuple string
    number boolean char double long short object any bytes array main yes no ok get put post
    delete head patch select where insert update values foo bar baz data info
    debug warning error critical len sum max min range print    sorted abs map filter reversed zip
    enumerate open input round next iter isinstance hasattr
    getattr pow
    """
)
# Of the types every language has: whatever they are called on, they say nothing of it.
METHODS = _words(
    """
    append extend sort reverse join split format lower upper strip lstrip rstrip isupper islower
    isdigit isalpha isalnum startswith endswith replace find index count keys values items get pop
    push add remove insert update copy clear map filter reduce length size tostring includes slice
    splice concat then catch encode decode title capitalize setdefault discard union intersection
    """
)
DUNDERS = _words(
    """
    init main name call repr str eq hash enter exit getattr setattr all file dict class slots iter
    next len contains getitem setitem new del doc version aenter aexit post_init lt gt le ge add
    sub mul bool getattribute init_subclass annotations
    """
)
# What follows `pip install` in a sentence and is no package.
NO_PACKAGES = _words(
    """
    and or then to in the a an it its this that them again fails failed fail works worked command
    commands step steps hangs hung is was does did with for from into on at by as but if when once
    which because so not now first here there will would can could should may might must has had
    process instructions packages package dependencies deps everything something all latest run
    runs inside before after also only
    """
)
# A quoted number of one of these is a place in this text or another, not a name.
NUMBERED = _words(
    """
    step figure option part question problem table day week case test example chapter section page
    level line item number phase answer task room grade thought note point rule version stage box
    group player team type year month hour round
    """
)
SMALL_WORDS = _words(
    """
    of the and for in on a an de la le von van der du to at & et und
    """
)
