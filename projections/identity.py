"""Ids that read models derive, so that every generation gives a row the same one."""

import hashlib
from uuid import UUID

MEMORY_NAMESPACE = UUID("b7a9c2f4-0c57-5d0e-8f3c-3a1d8a6f7e21")


def content_hash_of(text: str) -> bytes:
    """What identical texts share: SHA-256 of the text as it is recorded."""
    return hashlib.sha256(text.encode()).digest()


def memory_id_of(thought_id: UUID) -> UUID:
    """The id of a thought's memory: ``uuid5(MEMORY_NAMESPACE, str(thought_id))``.

    Written out, because the library's takes twice as long and every thought needs one.
    """
    name = MEMORY_NAMESPACE.bytes + str(thought_id).encode()
    digest = hashlib.sha1(name, usedforsecurity=False).digest()
    return UUID(bytes=digest[:16], version=5)
