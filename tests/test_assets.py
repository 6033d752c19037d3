"""The pages' scripts: there after an install, checked when fetched, and missed with a word on the remedy."""

from __future__ import annotations

import base64
import importlib.util
import json
import subprocess
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hakaru import assets
from hakaru.assets import script, script_path
from hakaru.errors import HakaruError

ROOT = Path(__file__).parents[1]
SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
    "wheel"
]["hooks"]["custom"]["scripts"]


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", assets.SCRIPTS)
def test_the_scripts_are_those_of_pyproject(name: str) -> None:
    fetched = json.loads((assets.FOLDER / "fetched.json").read_text())
    assert fetched == SCRIPTS
    assert len(script(name)) > 20_000
    assert script_path(name).with_suffix(".LICENSE").is_file()
    if name == "htmx":
        assert SCRIPTS[name]["version"] in script(name)


def test_an_unknown_script() -> None:
    with pytest.raises(HakaruError, match="no script 'jquery'; known: echarts, htmx"):
        script("jquery")


def test_a_script_that_the_build_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "FOLDER", tmp_path)
    with pytest.raises(HakaruError, match=r"without the scripts .* pip install"):
        script("echarts")


def test_a_script_that_was_changed_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write to the folder of the package shall not run scripts in the pages unnoticed."""
    (tmp_path / "echarts.min.js").write_text(script("echarts") + "\nfetch('//evil')")
    (tmp_path / "htmx.min.js").write_bytes(script_path("htmx").read_bytes())
    monkeypatch.setattr(assets, "FOLDER", tmp_path)
    with pytest.raises(HakaruError, match=r"echarts.min.js was changed .* expected sha256-tmslrr"):
        script("echarts")
    assert script("htmx")


@pytest.mark.parametrize("name", assets.SCRIPTS)
def test_the_hashes_are_those_of_the_files(name: str) -> None:
    """By another tool, openssl."""
    command = ["openssl", "dgst", "-sha256", "-binary", str(script_path(name))]
    digest = subprocess.run(command, capture_output=True, check=True).stdout
    assert f"sha256-{base64.b64encode(digest).decode()}" == assets.HASHES[name]


def test_the_build_hashes_what_lies_there(hook: ModuleType, tmp_path: Path) -> None:
    """That a list says it was fetched is not enough: a changed script is fetched anew."""
    folder = tmp_path / "src" / "hakaru" / "assets"
    folder.mkdir(parents=True)
    (folder / "fetched.json").write_text(json.dumps(SCRIPTS))
    (folder / "scripts.json").write_text(json.dumps(assets.HASHES))
    for name in assets.SCRIPTS:
        (folder / f"{name}.min.js").write_bytes(script_path(name).read_bytes())
    made = hook.ScriptsHook(str(tmp_path), {"scripts": SCRIPTS}, None, None, "", "wheel", App([]))
    assert made._is_complete()
    with open(folder / "htmx.min.js", "a") as file:
        file.write(" ")
    assert not made._is_complete()


def test_a_fetched_script_without_a_known_hash_is_refused(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "src" / "hakaru" / "assets"
    folder.mkdir(parents=True)
    (folder / "scripts.json").write_text(json.dumps(assets.HASHES))
    monkeypatch.setattr(hook, "_pack", lambda package, folder: folder / "x.tgz")
    monkeypatch.setattr(hook, "_check", lambda packed, integrity: None)
    monkeypatch.setattr(hook, "_unpack", lambda packed, inside, target: target.write_text("evil"))
    made = hook.ScriptsHook(str(tmp_path), {"scripts": SCRIPTS}, None, None, "", "wheel", App([]))
    with pytest.raises(hook.Unfetched, match=r"which is not in scripts\.json"):
        made._fetch_all()


def test_a_script_that_is_not_the_pinned_one_is_refused(hook: ModuleType, tmp_path: Path) -> None:
    packed = tmp_path / "echarts-6.1.0.tgz"
    packed.write_bytes(b"not what it was")
    with pytest.raises(hook.Unfetched, match="expected q0ya"):
        hook._check(packed, SCRIPTS["echarts"]["integrity"])


def test_script_and_licence_are_taken_from_the_package(hook: ModuleType, tmp_path: Path) -> None:
    for name in ("dist/a.min.js", "LICENSE"):
        (tmp_path / "package" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "package" / name).write_text(name)
    packed = tmp_path / "a.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    hook._unpack(packed, "dist/a.min.js", tmp_path / "a.min.js")
    assert (tmp_path / "a.min.js").read_text() == "dist/a.min.js"
    assert (tmp_path / "a.min.LICENSE").read_text() == "LICENSE"


def test_a_package_that_there_is_not(hook: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(hook.Unfetched, match=r"npm pack \./nothing-here failed"):
        hook._pack("./nothing-here", tmp_path)


@pytest.mark.parametrize("version", ["standard", "editable"])
def test_without_npm_only_an_editable_install_goes_on(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Nothing is fetched before it is missing: the folder is empty here, and npm cannot be run."""
    monkeypatch.setattr(hook, "_npm", lambda: [str(tmp_path / "no-npm")])
    warned: list[str] = []
    made = hook.ScriptsHook(
        str(tmp_path), {"scripts": SCRIPTS}, None, None, "", "wheel", App(warned)
    )
    if version == "standard":
        with pytest.raises(RuntimeError, match="HAKARU_WITHOUT_SCRIPTS=1"):
            made.initialize(version, {})
    else:
        made.initialize(version, {})
        assert "npm could not be run" in warned[0]
    monkeypatch.setenv("HAKARU_WITHOUT_SCRIPTS", "1")
    made.initialize("standard", {})
    assert made.dependencies() == []


class App:
    """What hatchling hands to a hook, as far as the hook uses it."""

    def __init__(self, warned: list[str]) -> None:
        self.warned = warned

    def display_warning(self, message: str) -> Any:
        self.warned.append(message)
