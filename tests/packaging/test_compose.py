"""The containers, checked without an engine to run them: what they name has to exist."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml

from peripety.core.config import Config, ProviderName
from peripety.rpc.channel import SERVICES as MODULES
from peripety.server.app import SERVICES
from support.repo.repository import ROOT, command_exists

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "services" / "Dockerfile").read_text(encoding="utf-8")
OWN_VARIABLES = {"PERIPETY_SIMCORE"} | {
    str(field.validation_alias or f"peripety_{name}".upper()) for name, field in Config.model_fields.items()
}

ENVOY = yaml.safe_load((ROOT / "services" / "envoy.yaml").read_text(encoding="utf-8"))["static_resources"]

services = pytest.mark.parametrize("service", SERVICES)


def instructions(kind: str) -> list[str]:
    """The arguments of every instruction of one kind, continuation lines joined."""
    lines = DOCKERFILE.replace("\\\n", " ").splitlines()
    return [line.partition(" ")[2].strip() for line in lines if line.split(" ")[0] == kind]


def image_variables() -> dict[str, str]:
    words = [word for line in instructions("ENV") for word in shlex.split(line)]
    return dict(word.split("=", 1) for word in words)


def listening_port(settings: dict[str, Any]) -> str:
    return str(settings["environment"]["PERIPETY_LISTEN"]).rpartition(":")[2]


def test_each_service_has_one_container() -> None:
    assert set(COMPOSE["services"]) == {*SERVICES, "envoy", "edge"}
    own = [*SERVICES, "edge"]
    assert [COMPOSE["services"][name]["command"] for name in own] == [["serve", name] for name in own]


@pytest.mark.parametrize("service", [*SERVICES, "edge"])
def test_every_container_comes_from_the_one_dockerfile(service: str) -> None:
    build = COMPOSE["services"][service]["build"]
    assert (ROOT / build["context"] / build["dockerfile"]).samefile(ROOT / "services" / "Dockerfile")


@pytest.mark.slow_after(1, reason="starts a process for each case")
@services
def test_the_command_exists(service: str) -> None:
    assert instructions("ENTRYPOINT") == ['["peripety"]']
    assert command_exists(["peripety", *COMPOSE["services"][service]["command"]])


@pytest.mark.parametrize("service", [*SERVICES, "edge"])
def test_every_variable_is_one_that_the_program_reads(service: str) -> None:
    assert set(COMPOSE["services"][service]["environment"]) <= OWN_VARIABLES
    assert {name for name in image_variables() if name.startswith("PERIPETY_")} <= OWN_VARIABLES


@services
def test_a_container_gets_every_setting_of_the_model_that_its_service_reads(service: str) -> None:
    sources = (ROOT / "services" / "peripety" / service).rglob("*.py")
    read = {name for source in sources for name in re.findall(r"config\.(\w+)", source.read_text("utf-8"))}
    fields = [field for name, field in Config.model_fields.items() if name in read]
    if service == "gateway":
        # The gateway builds the names of its provider variables at run time, from the provider's name.
        fields = list(Config.model_fields.values())
    needed = {str(field.validation_alias) for field in fields if field.validation_alias}
    assert needed <= set(COMPOSE["services"][service]["environment"])


@services
@pytest.mark.parametrize("provider", ProviderName)
def test_a_container_accepts_what_it_is_given_for_every_provider(
    monkeypatch: pytest.MonkeyPatch,
    service: str,
    provider: ProviderName,
) -> None:
    shell = {"MODEL_PROVIDER": provider.value, "OPENAI_API_BASE": "http://127.0.0.1:1/v1"}
    for name, value in COMPOSE["services"][service]["environment"].items():
        given = re.fullmatch(r"\$\{(\w+):-(.*)\}", value)
        monkeypatch.setenv(name, shell.get(given[1], given[2]) if given else value)
    assert Config.from_environment().model_provider is provider


@services
def test_peers_are_sought_where_they_listen(service: str) -> None:
    environment = COMPOSE["services"][service]["environment"]
    addresses = {
        name: value for name, value in environment.items() if re.fullmatch(r"PERIPETY_\w+_ADDRESS", name)
    }
    # Only the edge reads the address of all services.
    peers = OWN_VARIABLES - {"PERIPETY_SERVICES_ADDRESS"}
    assert set(addresses) == {name for name in peers if name.endswith("_ADDRESS")}
    for name, address in addresses.items():
        peer = name.removeprefix("PERIPETY_").removesuffix("_ADDRESS").lower()
        assert address == f"{peer}:{listening_port(COMPOSE['services'][peer])}"


def test_ports_are_published_on_loopback_and_do_not_collide() -> None:
    published = [port for settings in COMPOSE["services"].values() for port in settings["ports"]]
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+:500(50|51|80)", port) for port in published)
    assert len({port.split(":")[1] for port in published}) == len(published) == len(COMPOSE["services"])


@services
def test_the_container_listens_on_the_port_that_is_published_exposed_and_checked(service: str) -> None:
    port = listening_port(COMPOSE["services"][service])
    assert instructions("EXPOSE") == [port]
    assert f"127.0.0.1:{port}" in instructions("HEALTHCHECK")[0]


@services
def test_a_service_waits_for_those_it_calls(service: str) -> None:
    waited_for = COMPOSE["services"][service].get("depends_on", {})
    modules = [ROOT / "services" / f"{module.replace('.', '/')}.py" for module in SERVICES[service]]
    setup = "".join(module.read_text("utf-8") for module in modules)
    assert list(waited_for) == re.findall(r'wiring\.get_channel\("(\w+)"\)', setup)
    assert all(how == {"condition": "service_healthy"} for how in waited_for.values())


def test_envoy_has_a_route_and_a_cluster_for_each_service() -> None:
    manager = ENVOY["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    (host,) = manager["route_config"]["virtual_hosts"]
    routes = {route["match"]["prefix"]: route["route"]["cluster"] for route in host["routes"]}
    assert set(routes) == {
        f"/{module.rpartition('.')[0]}." for modules in MODULES.values() for module in modules
    }
    members = {}
    for cluster in ENVOY["clusters"]:
        (group,) = cluster["load_assignment"]["endpoints"]
        address = group["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
        members[cluster["name"]] = f"{address['address']}:{address['port_value']}"
    assert members == {name: f"{name}:{listening_port(COMPOSE['services'][name])}" for name in SERVICES}
    assert set(routes.values()) == set(members)


def test_the_edge_calls_envoy_where_it_listens() -> None:
    socket = ENVOY["listeners"][0]["address"]["socket_address"]
    address = COMPOSE["services"]["edge"]["environment"]["PERIPETY_SERVICES_ADDRESS"]
    assert address == f"envoy:{socket['port_value']}"


def test_only_the_gateway_gets_the_key() -> None:
    holders = [name for name in SERVICES if "OPENAI_API_KEY" in COMPOSE["services"][name]["environment"]]
    assert holders == ["gateway"]


def test_data_is_kept_in_a_volume_that_the_settings_point_to() -> None:
    volumes = [
        volume for name in (*SERVICES, "edge") for volume in COMPOSE["services"][name].get("volumes", [])
    ]
    assert {volume.partition(":")[0] for volume in volumes} == set(COMPOSE["volumes"])
    assert {volume.partition(":")[2] for volume in volumes} == set(instructions("VOLUME"))
    assert image_variables()["PERIPETY_DATABASE_URL"].startswith(f"sqlite:///{instructions('VOLUME')[0]}/")


def test_what_the_dockerfile_copies_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for line in instructions("COPY"):
        if not line.startswith("--from"):
            for source in line.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in ignored


def test_the_image_does_not_run_as_root() -> None:
    after_last_stage = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    assert "\nUSER peripety\n" in after_last_stage


def test_stages_are_named_before_they_are_used() -> None:
    stages = re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"--from=(\S+)|,from=([^, ]+)", DOCKERFILE)) <= {(s, "") for s in stages} | {
        ("", s) for s in stages
    }


def test_the_health_check_is_a_program() -> None:
    (check,) = instructions("HEALTHCHECK")
    code = yaml.safe_load(check[check.index("[") :])[2]
    compile(code, "HEALTHCHECK", "exec")
