"""The pure side of embedding: the hashing model, batches, the pace, which model is meant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.settings import EmbeddingDimensionsError, Settings
from projections.embeddings.batches import (
    BATCH_CHARACTERS_MAX,
    BATCH_CHARACTERS_MIN,
    BATCH_SECONDS_MAX,
    BATCH_TEXTS_MAX,
    TEXT_CHARACTERS_READ,
    Pace,
    cut,
)
from projections.embeddings.choice import DEFAULT, chosen, name_of
from projections.embeddings.errors import ModelUnknownError
from projections.embeddings.hashing import HashingModel, hashing_model
from projections.embeddings.model import as_text, can_be_embedded, is_usable

texts = st.text(st.characters(codec="utf-8"), max_size=40)


def cosine(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


@given(texts, st.integers(1, 50))
def test_the_hashing_model_gives_any_text_a_usable_vector_of_length_one(text, dimensions):
    (vector,) = HashingModel(dimensions).embed([text])

    assert is_usable(vector, dimensions)
    assert math.isclose(cosine(vector, vector), 1.0, rel_tol=1e-5)


@given(st.lists(texts, max_size=5))
def test_a_text_gets_the_same_vector_in_any_company(several):
    model = HashingModel(16)

    together = model.embed(several)

    assert together == [model.embed([text])[0] for text in several]


def test_texts_that_share_words_are_more_alike():
    asked, like, unlike = HashingModel(256).embed(
        ["how we made the migration safe", "the migration was made safe", "a cat sat on a mat"]
    )

    assert cosine(asked, like) > 0.5 > cosine(asked, unlike)


def test_a_vector_as_text_is_read_back_to_the_bit():
    (vector,) = HashingModel(33).embed(["to the last bit"])

    read = [float(number) for number in as_text(vector)[1:-1].split(",")]

    assert type(vector)("f", read) == vector


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [1.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_a_vector_without_direction_or_of_another_size_is_not_usable(vector):
    assert not is_usable(vector, 2)


@pytest.mark.parametrize("text", ["", "  \n", "\0", "\u3000\t"])
def test_a_text_of_white_space_is_not_embedded(text):
    assert not can_be_embedded(text)


@given(st.lists(st.text("ab", max_size=1500)), st.integers(1, 20_000))
def test_batches_hold_every_text_once_and_each_as_much_as_it_may(several, characters_max):
    batches = list(cut(several, characters_max))

    assert sorted(text for batch in batches for text in batch) == sorted(several)
    for batch in batches:
        padded = len(batch) * min(max(map(len, batch)), TEXT_CHARACTERS_READ)
        assert len(batch) == 1 or padded <= characters_max
        assert len(batch) <= BATCH_TEXTS_MAX


def test_a_slow_machine_gets_smaller_batches_and_a_quick_one_its_share_again():
    pace = Pace()

    pace.took(BATCH_SECONDS_MAX * 2)
    assert pace.characters_max == BATCH_CHARACTERS_MAX // 2

    for _ in range(20):
        pace.took(BATCH_SECONDS_MAX * 2)
    assert pace.characters_max == BATCH_CHARACTERS_MIN

    for _ in range(50):
        pace.took(BATCH_SECONDS_MAX / 2)
    assert pace.characters_max == BATCH_CHARACTERS_MAX


@pytest.mark.parametrize(
    "source", ["hashing:", "hashing:0", "hashing:16001", "hashing:x", "hashing:²"]
)
def test_a_hashing_model_of_no_size_is_refused(source):
    with pytest.raises(ModelUnknownError):
        hashing_model(source)


@pytest.mark.parametrize(
    ("given", "source", "name"),
    [
        (None, DEFAULT, "all-MiniLM-L6-v2"),
        ("/models/mine", "/models/mine", "mine"),
        ("hashing:8", "hashing:8", "hashing:8"),
    ],
)
def test_the_setting_says_which_model(given, source, name):
    choice = chosen(Settings(embedding_model=given, embedding_dimensions=8))

    assert (choice.source, choice.dimensions) == (source, 8)
    assert name_of(source) == name


def test_the_default_may_be_named_as_it_is_shown():
    assert chosen(Settings(embedding_model=name_of(DEFAULT))) == chosen(Settings())


@pytest.mark.parametrize("given", ["off", "OFF"])
def test_the_setting_switches_embedding_off(given):
    assert chosen(Settings(embedding_model=given)).is_off


@pytest.mark.parametrize("text", ["0", "16001", "-1", "many", "3.5", "²"])
def test_an_impossible_number_of_dimensions_is_refused(text):
    with pytest.raises(EmbeddingDimensionsError):
        Settings.from_environment({"THOUGHT_LEDGER_EMBEDDING_DIMENSIONS": text})
