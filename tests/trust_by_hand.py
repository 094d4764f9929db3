"""Trust policy 1 once more, from its table and by nothing of the product: thought by thought."""

import math
from collections import defaultdict
from datetime import datetime, timedelta

THOUGHTS = {"thought.added", "thought.revised", "thought.branched"}
HALF_LIFE = timedelta(days=90)


def by_chain(events):
    """The events of each chain; recalls change no score."""
    chains = defaultdict(list)
    for event in events:
        if event.topic != "chain.recalled":
            chains[event.chain].append(event)
    return chains


def scores(events, at):
    """The score of each thought of one chain at a moment, in millionths, by the events till then.

    And the mean over those that are live, rounded half up, None when none is.
    """
    known = [event for event in events if moment(event) <= at]
    pauses = pauses_of(known, at)
    found, live = {}, []
    for thought in known:
        if thought.topic not in THOUGHTS:
            continue
        thought_id = thought.payload["thought_id"]
        value, clock = 500_000, moment(thought)
        for event in known:
            if event.position > thought.position and (delta := told(event, thought, known)):
                value = decay(value, clock, moment(event), pauses)
                value = max(0, min(1_000_000, value + delta))
                clock = moment(event)
        found[thought_id] = decay(value, clock, at, pauses)
        if not is_superseded(thought_id, known) and not is_dead(thought, known):
            live.append(found[thought_id])
    return found, math.floor(sum(live) / len(live) + 0.5) if live else None


def told(event, thought, known):
    """What an event says for or against a thought that was there before it."""
    said, thought_id = event.payload, thought.payload["thought_id"]
    before = [one for one in known if one.position < event.position]
    match event.topic:
        case "chain.completed":
            return 0 if any(one.topic == "chain.completed" for one in before) else 50_000
        case "chain.abandoned":
            return -20_000
        case "feedback.given":
            return judged(event, thought_id, before)
        case "thought.abandoned" | "branch.closed":
            return -20_000 if is_under(event, thought, before) else 0
        case _ if event.topic in THOUGHTS and said["revises_thought_id"] == thought_id:
            return -50_000
    return 0


def judged(event, thought_id, before):
    said = event.payload
    thoughts = [one.payload for one in before if one.topic in THOUGHTS]
    if said["signal"] == "user_confirmed" and said["scope"] == "chain":
        earlier = [one.payload for one in before if one.topic == "feedback.given"]
        told = any(
            (one["signal"], one["scope"], one["source"])
            == (said["signal"], said["scope"], said["source"])
            for one in earlier
        )
        return 0 if told else 100_000
    if said["signal"] == "user_corrected":
        trunk = [one for one in thoughts if one["branch_id"] is None]
        meant, delta = (trunk or thoughts)[-1]["thought_id"], -150_000
    else:
        meant, delta = thoughts[-1]["thought_id"], 100_000
    return delta if thought_id == (said["thought_id"] or meant) else 0


def is_under(event, thought, known):
    """Whether an event gave up the thought, or one that it hangs under."""
    said = event.payload
    if event.topic == "branch.closed" and said["outcome"] != "abandoned":
        return False
    by_id = {one.payload["thought_id"]: one.payload for one in known if one.topic in THOUGHTS}
    above = thought.payload
    while above is not None:
        given_up = (
            above["thought_id"] == said["thought_id"]
            if event.topic == "thought.abandoned"
            else above["branch_id"] == said["branch_id"]
        )
        if given_up:
            return True
        above = by_id.get(above["parent_thought_id"])
    return False


def is_dead(thought, known):
    return any(
        is_under(event, thought, known)
        for event in known
        if event.topic in ("thought.abandoned", "branch.closed")
    )


def is_superseded(thought_id, known):
    return any(
        event.topic in THOUGHTS and event.payload["revises_thought_id"] == thought_id
        for event in known
    )


def pauses_of(known, at):
    pauses, since = [], None
    for event in known:
        if event.topic == "chain.paused":
            since = moment(event)
        elif since and event.topic in ("chain.resumed", "chain.abandoned"):
            pauses.append((since, moment(event)))
            since = None
    return [*pauses, (since, at)] if since else pauses


def decay(value, since, until, pauses):
    if value <= 200_000:
        return value
    rest = sum(
        (max(min(end, until) - max(begin, since), timedelta()) for begin, end in pauses),
        timedelta(),
    )
    half_lives = (until - since - rest) / HALF_LIFE
    return math.floor(200_000 + (value - 200_000) * math.exp2(-half_lives) + 0.5)


def moment(event):
    return datetime.fromisoformat(event.header["recorded_at"])
