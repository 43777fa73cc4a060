"""Requests of the tests: to the server, and to the interface of Prometheus."""

import json
import urllib.error
import urllib.parse
import urllib.request


def get(url, headers=None):
    """Status and text."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def query(prometheus, expression):
    """The samples of an expression now. An expression that cannot be evaluated is a failure."""
    status, text = get(f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    answer = json.loads(text)
    assert status == 200 and answer["status"] == "success", f"{expression}: {answer.get('error')}"
    assert not answer.get("warnings"), f"{expression}: {answer['warnings']}"
    return answer["data"]["result"]
