#!/usr/bin/env python3
"""Budgets for a language model gateway, with Headgate's REST API and Python's standard library.

Each call of a tenant is limited by requests a minute and tokens a minute (rate limits) and by
tokens a month (a quota). Run it against a server with the rules and the quota of the guide:

    language-model-gateway.py --server http://127.0.0.1:8080 --token TOKEN --quota QUOTA_ID
"""

import argparse
import json
import random
import threading
import urllib.error
import urllib.request

CHUNK = 16  # tokens between two reports of a stream


class Denied(Exception):
    """A budget has too few units left."""


class Headgate:
    def __init__(self, server, token):
        self.server, self.token = server, token

    def post(self, path, body):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"}
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            code = json.load(error)["error"]["code"]
            if code == "SYS_QUOTA_EXCEEDED":
                raise Denied(code) from error
            raise


class Budget:
    """What one call has reserved. Settled when the block ends, whatever ends it."""

    def __init__(self, headgate, tenant, quota, tokens):
        self.headgate, self.used = headgate, 0
        reserved = headgate.post("/api/v1/ratelimit/reservations", {
            "checks": [
                {"attributes": {"tenant": tenant, "unit": "tokens"}, "cost": tokens},
                {"attributes": {"tenant": tenant, "unit": "requests"}},
            ],
            "ttl_seconds": 60,
        })
        if not reserved["allowed"]:
            raise Denied("rate limit")
        self.limits = f"/api/v1/ratelimit/reservations/{reserved['id']}"
        try:
            body = {"amount": tokens, "ttl_seconds": 60}
            made = headgate.post(f"/api/v1/quotas/{quota}/reservations", body)
        except Exception:
            # Neither or both: what the rate limits have reserved returns.
            headgate.post(f"{self.limits}/cancel", {})
            raise
        self.quota = f"/api/v1/quotas/{quota}/reservations/{made['id']}"

    def charge(self, tokens):
        """Reports a chunk of a stream. Returns whether another one may be produced."""
        self.used += tokens
        # Both can be sent again: a total is charged once, and so is a request_id.
        limits = self.headgate.post(f"{self.limits}/use", {"total": [self.used, 0]})
        body = {"amount": tokens, "request_id": f"tokens-{self.used}"}
        quota = self.headgate.post(f"{self.quota}/use", body)
        return not (limits["stop"] or quota["stop"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Tokens were produced and paid for: charge them even past a limit.
        body = {"cost": [self.used, 1], "overdraft": True}
        self.headgate.post(f"{self.limits}/settle", body)
        self.headgate.post(f"{self.quota}/settle", {"amount": self.used, "overdraft": True})


def complete(headgate, tenant, quota, prompt_tokens, max_tokens):
    """A call without streaming: reserves the most it can cost, settles for what it did."""
    with Budget(headgate, tenant, quota, prompt_tokens + max_tokens) as budget:
        budget.used = prompt_tokens + random.randint(1, max_tokens)  # the model
        return budget.used


def stream(headgate, tenant, quota, tokens):
    """A stream: reserves one chunk, and reports each as it is produced."""
    with Budget(headgate, tenant, quota, CHUNK) as budget:
        while budget.used < tokens:
            chunk = min(CHUNK, tokens - budget.used)  # the model
            if not budget.charge(chunk):
                break
        return budget.used


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default="http://127.0.0.1:8080")
    parser.add_argument("--token", required=True)
    parser.add_argument("--quota", required=True)
    parser.add_argument("--tenant", default="acme")
    parser.add_argument("--calls", type=int, default=20)
    options = parser.parse_args()
    headgate, tenant, quota = Headgate(options.server, options.token), options.tenant, options.quota
    produced, denied, failed = [], [], []

    def call(number):
        try:
            if number % 2:
                produced.append(complete(headgate, tenant, quota, 100, 400))
            else:
                produced.append(stream(headgate, tenant, quota, 5_000))
        except Denied as reason:
            denied.append(reason)
        except Exception as error:  # shown below
            failed.append(error)

    calls = [threading.Thread(target=call, args=(number,)) for number in range(options.calls)]
    for thread in calls:
        thread.start()
    for thread in calls:
        thread.join()
    print(json.dumps({"produced": sum(produced), "admitted": len(produced), "denied": len(denied),
                      "failed": [repr(error) for error in failed]}))


if __name__ == "__main__":
    main()
