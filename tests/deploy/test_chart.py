"""The Helm chart: rendered by helm for each file of values in ci/, and held against the schemas of Kubernetes."""

import hashlib
import re
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/holdfast"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
# helm 3.17.3 for Linux on x86-64. Other people than helm's pack it for PyPI, so nothing else is run.
HELM = "c16af303055cfe1c1e64652b547cfdbed924e89fd2a20d8632d797978c14def3"
KUBERNETES = ["1.25", "1.33"]
# Kinds of the Prometheus operator, for which kubernetes-validate has no schema.
CUSTOM = {"ServiceMonitor", "PrometheusRule"}


@pytest.fixture(scope="session")
def helm(tool, tmp_path_factory):
    path = tool("helm")
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() == HELM, f"{path} is not the helm that is known"
    home = str(tmp_path_factory.mktemp("helm"))

    def run(*arguments):
        return subprocess.run([path, *map(str, arguments)], env={"HOME": home}, capture_output=True, text=True)

    return run


@pytest.fixture(scope="session")
def rendered(helm):
    def render(*arguments):
        done = helm("template", "rel", CHART, "--namespace", "storage", *arguments)
        assert done.returncode == 0, done.stderr
        return [resource for resource in yaml.safe_load_all(done.stdout) if resource]

    return render


def by_kind(resources, kind):
    return [resource for resource in resources if resource["kind"] == kind]


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_lint(helm, values):
    done = helm("lint", "--strict", CHART, "--values", values)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("kubernetes", KUBERNETES)
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_resources_are_valid(rendered, values, kubernetes):
    resources = rendered("--values", values, "--kube-version", kubernetes)
    for resource in resources:
        if resource["kind"] not in CUSTOM:
            kubernetes_validate.validate(resource, kubernetes, strict=True)
        assert resource["metadata"]["namespace"] == "storage"
    names = [(resource["kind"], resource["metadata"]["name"]) for resource in resources]
    assert len(names) == len(set(names))


def test_everything_has_each_kind(rendered):
    resources = rendered("--values", CHART / "ci/everything-values.yaml")
    kinds = {resource["kind"] for resource in resources}
    assert kinds == {
        "StatefulSet", "Service", "ConfigMap", "Secret", "Ingress", "PodDisruptionBudget", *CUSTOM
    }


def test_references_between_resources_hold(rendered):
    for values in VALUES:
        resources = rendered("--values", values)
        (stateful_set,) = by_kind(resources, "StatefulSet")
        template = stateful_set["spec"]["template"]
        labels = template["metadata"]["labels"]
        ports = {port["name"] for port in template["spec"]["containers"][0]["ports"]}
        services = {service["metadata"]["name"]: service for service in by_kind(resources, "Service")}
        assert stateful_set["spec"]["serviceName"] in services
        selectors = [service["spec"]["selector"] for service in services.values()]
        selectors += [stateful_set["spec"]["selector"]["matchLabels"]]
        selectors += [it["spec"]["selector"]["matchLabels"] for it in by_kind(resources, "PodDisruptionBudget")]
        for selector in selectors:
            assert selector.items() <= labels.items()
        for service in services.values():
            assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
        for ingress in by_kind(resources, "Ingress"):
            for rule in ingress["spec"]["rules"]:
                target = rule["http"]["paths"][0]["backend"]["service"]
                names = {port["name"] for port in services[target["name"]]["spec"]["ports"]}
                assert target["port"]["name"] in names
        for monitor in by_kind(resources, "ServiceMonitor"):
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            found = [it for it in services.values() if wanted <= it["metadata"]["labels"].items()]
            assert len(found) == 1
            assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in found[0]["spec"]["ports"]}
        volumes = {volume["name"] for volume in template["spec"]["volumes"]}
        volumes |= {claim["metadata"]["name"] for claim in stateful_set["spec"].get("volumeClaimTemplates", [])}
        assert {mount["name"] for mount in template["spec"]["containers"][0]["volumeMounts"]} == volumes


def test_admin_port_is_in_no_service_that_can_be_seen_from_outside(rendered):
    resources = rendered("--values", CHART / "ci/everything-values.yaml")
    for service in by_kind(resources, "Service"):
        has_admin = "admin" in {port["name"] for port in service["spec"]["ports"]}
        assert has_admin == (service["spec"].get("clusterIP") == "None")


def test_rules_of_the_chart_are_the_alerts(rendered):
    (rule,) = by_kind(rendered("--values", CHART / "ci/everything-values.yaml"), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())


def test_variables_are_settings_of_the_server(rendered, program):
    known = set(re.findall(r"\[env: (HOLDFAST_\w+)\]", subprocess.check_output([program, "--help"], text=True)))
    (stateful_set,) = by_kind(rendered("--values", CHART / "ci/everything-values.yaml"), "StatefulSet")
    given = {variable["name"] for variable in stateful_set["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert given <= known


def test_version_is_that_of_the_server(version):
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == version


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "give accounts, or existingSecret"),
        (["--set", "existingSecret=s", "--set", "accounts[0].name=abc", "--set", "accounts[0].keys[0]=a2V5"], "not both"),
        (["--set", "existingSecret=s", "--set", "tls.enabled=true"], "tls.secretName"),
        (["--set", "existingSecret=s", "--set", "replicas=2"], "replicas"),
        (["--set", "accounts[0].name=Upper", "--set", "accounts[0].keys[0]=a2V5"], "accounts.0.name"),
    ],
    ids=["no accounts", "accounts twice", "no certificate", "unknown value", "bad name"],
)
def test_values_that_cannot_be_used_are_refused(helm, arguments, message):
    done = helm("template", "rel", CHART, *arguments)
    assert done.returncode != 0
    assert message in done.stderr
