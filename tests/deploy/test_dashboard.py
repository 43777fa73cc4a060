"""The Grafana dashboard against a real server: every query has data while the server works."""

import json
import re
from pathlib import Path

import pytest

from conftest import RATE_SECONDS
from web import get, query

DASHBOARD = json.loads((Path(__file__).parents[2] / "deploy/grafana/holdfast.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [(panel["title"], target) for panel in PANELS for target in panel["targets"]]
# As Grafana fills in: all of a variable is the list of its values.
VARIABLES = {"$job": "holdfast", "$instance": ".+", "$service": "blob|queue|table|file"}


def filled_in(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression.replace("$__rate_interval", f"{RATE_SECONDS}s")


@pytest.mark.parametrize("title, target", TARGETS, ids=[f"{title} {target['refId']}" for title, target in TARGETS])
def test_query_has_data_and_what_its_legend_names(prometheus, title, target):
    samples = query(prometheus, filled_in(target["expr"]))
    assert samples, f"no data: {filled_in(target['expr'])}"
    for label in re.findall(r"{{(\w+)}}", target["legendFormat"]):
        assert all(sample["metric"].get(label) for sample in samples), f"{label} is not in {samples[0]['metric']}"


def test_variables_find_the_server(prometheus):
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
            assert {sample["metric"][label] for sample in query(prometheus, filled_in(selector))}, variable["name"]


def test_every_variable_of_a_query_is_defined():
    defined = {f"${variable['name']}" for variable in DASHBOARD["templating"]["list"]} | {"$__rate_interval"}
    for title, target in TARGETS:
        assert set(re.findall(r"\$\w+", target["expr"])) <= defined, title


def test_panels_do_not_overlap():
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        rows = range(place["y"], place["y"] + place["h"])
        cells = {(x, y) for x in columns for y in rows}
        assert not cells & taken and max(columns) < 24, panel["title"]
        taken |= cells
    identifiers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(identifiers) == len(set(identifiers))


def test_every_metric_of_the_server_is_shown(server):
    status, text = get(server.addresses["admin"] + "/metrics")
    assert status == 200
    shown = " ".join(target["expr"] for _, target in TARGETS)
    for family in re.findall(r"^# TYPE (\w+)", text, re.MULTILINE):
        assert family in shown, f"no panel shows {family}"
