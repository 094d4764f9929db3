"""Trust policy 1 once more, from its table and by nothing of the product: thought by thought."""

import math
from collections import defaultdict
from datetime import datetime, timedelta
from functools import cache

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
    telling = [event for event in known if may_tell(event)]
    by_id = {one.payload["thought_id"]: one.payload for one in known if one.topic in THOUGHTS}
    found, live = {}, []
    for thought in known:
        if thought.topic not in THOUGHTS:
            continue
        thought_id = thought.payload["thought_id"]
        value, clock = 500_000, moment(thought)
        path = path_of(thought, by_id)
        for event in telling:
            if event.position > thought.position and (delta := told(event, path, known)):
                value = decay(value, clock, moment(event), pauses)
                value = max(0, min(1_000_000, value + delta))
                clock = moment(event)
        found[thought_id] = decay(value, clock, at, pauses)
        is_dead = any(gives_up(event, path) for event in telling)
        if not is_superseded(thought_id, telling) and not is_dead:
            live.append(found[thought_id])
    return found, math.floor(sum(live) / len(live) + 0.5) if live else None


def may_tell(event):
    return event.topic not in THOUGHTS or event.payload["revises_thought_id"]


def told(event, path, known):
    """What an event says for or against a thought that was there before it."""
    said, thought_id = event.payload, path[0]["thought_id"]
    match event.topic:
        case "chain.completed":
            first = next(one for one in known if one.topic == "chain.completed")
            return 50_000 if event is first else 0
        case "chain.abandoned":
            return -20_000
        case "feedback.given":
            return judged(event, thought_id, known)
        case "thought.abandoned" | "branch.closed":
            return -20_000 if gives_up(event, path) else 0
        case _ if event.topic in THOUGHTS and said["revises_thought_id"] == thought_id:
            return -50_000
    return 0


def judged(event, thought_id, known):
    said = event.payload
    before = [one for one in known if one.position < event.position]
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


def path_of(thought, by_id):
    """The thought and all it hangs under, up to the root."""
    path = [thought.payload]
    while (above := by_id.get(path[-1]["parent_thought_id"])) is not None:
        path.append(above)
    return path


def gives_up(event, path):
    """Whether an event gave up a thought of this path, or its branch."""
    said = event.payload
    if event.topic == "thought.abandoned":
        return any(one["thought_id"] == said["thought_id"] for one in path)
    if event.topic == "branch.closed" and said["outcome"] == "abandoned":
        return any(one["branch_id"] == said["branch_id"] for one in path)
    return False


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
    return read_moment(event.header["recorded_at"])


read_moment = cache(datetime.fromisoformat)
