"""The alert rules: by promtool, and against what a real server exposes."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from web import get, query

FOLDER = Path(__file__).parents[2] / "deploy/prometheus"
RULES = [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]
SELECTOR = re.compile(r"\b(holdfast_\w+){([^}]*)}")


@pytest.mark.parametrize("arguments", [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]], ids=" ".join)
def test_promtool(tool, arguments):
    done = subprocess.run([tool("promtool"), *arguments], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_unit_test():
    tests = (FOLDER / "alerts_test.yaml").read_text()
    assert [rule["alert"] for rule in RULES if rule["alert"] not in tests] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alert_asks_for_what_the_server_exposes(prometheus, rule):
    query(prometheus, rule["expr"])
    for metric, matchers in SELECTOR.findall(rule["expr"]):
        samples = query(prometheus, metric)
        assert samples, f"{metric} is not exposed"
        for label in re.findall(r"(\w+)\s*(?:=|!=|=~|!~)", re.sub(r'"[^"]*"', '""', matchers)):
            assert any(label in sample["metric"] for sample in samples), f"{metric} has no label {label}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alert_names_operations_and_codes_that_exist(prometheus, root, rule):
    matrix = (root / "docs/support-matrix.md").read_text()
    operations = [line.split("|")[1].strip() for line in matrix.splitlines() if line.startswith("| ")]
    for pattern in re.findall(r'operation=~"([^"]+)"', rule["expr"]):
        for alternative in pattern.split("|"):
            assert any(re.fullmatch(alternative, operation) for operation in operations), alternative
    for pattern in re.findall(r'code=~"([^"]+)"', rule["expr"]):
        for code in pattern.split("|"):
            assert query(prometheus, f'holdfast_errors_total{{code="{code}"}}'), code


def test_prometheus_evaluates_every_rule_and_none_fires(prometheus):
    groups = json.loads(get(f"{prometheus}/api/v1/rules")[1])["data"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in RULES}
    for rule in rules:
        assert rule["health"] == "ok", f"{rule['name']}: {rule.get('lastError')}"
        assert rule["state"] != "firing", rule["name"]
