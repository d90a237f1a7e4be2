"""Tests the relay with aionostr: python aionostr_client.py URL

Exits with 0 if all assertions hold, and prints the one that fails otherwise.
"""

import asyncio
import json
import sys
import time
import urllib.request

from aionostr.event import Event
from aionostr.key import PrivateKey
from aionostr.relay import Relay

SOON = 120
NOW = int(time.time())
KEY = PrivateKey()


def event(kind, tags, content="", age=0):
    made = Event(kind=kind, pubkey=KEY.public_key.hex(), tags=tags, content=content, created_at=NOW - age)
    made.sign(KEY.hex())
    return made


async def soon(what, awaitable):
    try:
        return await asyncio.wait_for(awaitable, SOON)
    except asyncio.TimeoutError:
        sys.exit(f"the client hangs: {what}")


async def publish(relay, made):
    """Whether the relay accepted the event, and its note."""
    await relay.add_event(made)
    _, event_id, taken, note = await soon("the answer to an event", relay.event_adds.get())
    assert event_id == made.id, event_id
    return taken, note


async def fetch(relay, name, *filters):
    """Stored events."""
    queue = await relay.subscribe(name, *filters)
    found = []
    while (item := await soon(f"what is kept: {filters}", queue.get())) is not None:
        found.append(item.id)
    await relay.unsubscribe(name)
    return found


def information(url):
    request = urllib.request.Request(url.replace("ws://", "http://"), headers={"accept": "application/nostr+json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=SOON) as answer:
        assert answer.headers["access-control-allow-origin"] == "*", answer.headers
        return json.load(answer)


async def main(url):
    assert {1, 9, 11, 40, 42, 70} <= set(information(url)["supported_nips"])
    about = {"#t": ["rust"]}
    async with Relay(url, private_key=KEY.hex(), connect_timeout=SOON) as relay:
        first = event(1, [["t", "rust"]], "hello")
        assert await publish(relay, first) == (True, "")
        assert await publish(relay, first) == (True, "duplicate: already have this event")
        assert await fetch(relay, "kept", about) == [first.id]
        assert await fetch(relay, "new", {**about, "limit": 0}) == []

        # It does not know CLOSED, but shows the NOTICE.
        await relay.subscribe("bad", {"kinds": [1]})
        reason = await soon("the refusal of a subscription", relay.notices.get())
        assert reason == "invalid: a #t filter is required", reason

        queue = await relay.subscribe("live", {"#t": ["live"], "limit": 0})
        assert await soon("the end of what is kept", queue.get()) is None
        live = event(1, [["t", "live"]], "new")
        await publish(relay, live)
        told = await soon("a new event", queue.get())
        assert told.id == live.id and told.verify(), told

        article = lambda age: event(30023, [["t", "articles"], ["d", "x"]], age=age)
        newest = article(0)
        assert await publish(relay, newest) == (True, "")
        taken, note = await publish(relay, article(10))
        assert taken and note.startswith("duplicate: "), note
        assert await fetch(relay, "articles", {"#t": ["articles"]}) == [newest.id]

        address = f"30023:{KEY.public_key.hex()}:x"
        assert await publish(relay, event(5, [["e", first.id], ["a", address]])) == (True, "")
        assert await fetch(relay, "kept", about) == []
        assert await fetch(relay, "articles", {"#t": ["articles"]}) == []

        # It answers the challenge by itself.
        mine = event(1, [["t", "rust"], ["-"]])
        taken, note = await publish(relay, mine)
        assert not taken and note.startswith("auth-required: "), note
        _, _, signed_in, note = await soon("the answer to signing in", relay.event_adds.get())
        assert signed_in, note
        assert await publish(relay, mine) == (True, "")
    print("aionostr is content")


asyncio.run(main(sys.argv[1]))
