"""A new model is built beside the old one, and takes over with no dip."""

import pytest

from projections.embeddings import status
from projections.embeddings.errors import (
    NoEarlierSpaceError,
    SpaceLiveError,
    SpaceNotFoundError,
)
from projections.embeddings.hashing import HashingModel
from projections.embeddings.loading import load
from projections.embeddings.operating import drop, switch
from projections.embeddings.spaces import list_spaces, live_space
from tests.acceptance.product import eventually
from tests.postgres.embedding import Gated, ask_until_embedded, embed, embedding, expected, stored
from tests.postgres.projecting import SECONDS_MAX, record_chain

OLD, NEW = "hashing:16", "hashing:24"


def states(connection):
    return {space.number: space.state for space in list_spaces(connection)}


def test_a_new_model_is_built_beside_and_takes_over_when_it_has_all(database, writer, reader):
    record_chain(writer, "one", "two")
    embed(database, OLD)
    gated = Gated(24)

    with embedding(database, NEW, loads=lambda source: gated if source == NEW else load(source)):
        assert gated.tried.wait(SECONDS_MAX)
        assert states(reader) == {1: "live", 2: "building"}
        gated.gate.set()
        eventually(lambda: live_space(reader).number == 2, SECONDS_MAX, "a promotion")

    assert states(reader) == {1: "kept", 2: "live"}
    assert stored(reader, 2) == expected(reader, HashingModel(24))


def test_while_it_is_built_the_live_one_answers_and_is_kept_up(database, writer, reader):
    record_chain(writer, "one", "two")
    embed(database, OLD)
    record_chain(writer, "three")
    gated = Gated(24)

    with embedding(database, NEW, loads=lambda source: gated if source == NEW else load(source)):
        assert gated.tried.wait(SECONDS_MAX)
        # The live one had its turn before.
        assert stored(reader, 1) == expected(reader)
        assert stored(reader, 2) == []
        gated.gate.set()
        found = ask_until_embedded(database, "a question")

    assert (found.space, found.dimensions) in {(1, 16), (2, 24)}


def test_while_a_new_model_cannot_be_loaded_the_live_one_answers_and_is_kept_up(
    database, writer, reader
):
    record_chain(writer, "one")
    embed(database, OLD)
    record_chain(writer, "two")
    said = []

    with embedding(database, "/nowhere/model", said=said):
        found = ask_until_embedded(database, "a question")
        eventually(lambda: status.look(reader).behind == 0, SECONDS_MAX, "the second thought")
        seen = status.look(reader)

    assert (found.space, found.dimensions) == (1, 16)
    assert (seen.state, seen.model) == ("ready", OLD)
    assert "/nowhere/model" in seen.reason
    assert seen.reason in said
    assert states(reader) == {1: "live"}
    assert stored(reader, 1) == expected(reader)


def test_a_space_that_readers_were_taken_back_from_does_not_take_over_by_itself(
    database, projector, writer, reader
):
    record_chain(writer, "one")
    embed(database, OLD)
    embed(database, NEW)
    assert states(reader) == {1: "kept", 2: "live"}

    switch(projector, None)
    record_chain(writer, "two")
    embed(database, NEW)

    assert states(reader) == {1: "live", 2: "kept"}
    assert stored(reader, 1) == expected(reader)

    switch(projector, 2)
    embed(database, NEW)

    assert states(reader) == {1: "kept", 2: "live"}
    assert stored(reader, 2) == expected(reader, HashingModel(24))


def test_the_setting_alone_goes_back_too_and_embeds_only_what_is_new(database, writer, reader):
    record_chain(writer, "one")
    embed(database, OLD)
    embed(database, NEW)
    record_chain(writer, "two")

    embed(database, OLD)

    assert states(reader) == {1: "live", 2: "kept"}
    assert live_space(reader).embedded == 2


def test_a_kept_space_is_dropped_and_the_live_one_is_not(database, projector, writer, reader):
    record_chain(writer, "one")
    embed(database, OLD)
    with pytest.raises(NoEarlierSpaceError):
        switch(projector, None)
    embed(database, NEW)

    drop(projector, 1)

    with pytest.raises(SpaceLiveError):
        drop(projector, 2)
    with pytest.raises(SpaceNotFoundError):
        drop(projector, 1)
    assert states(reader) == {2: "live"}
    assert reader.execute("SELECT to_regclass('vectors.thoughts_1')").fetchone() == (None,)
    assert status.look(reader).thoughts == 1
