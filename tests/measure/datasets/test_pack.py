"""Packing: from image folders and between all layouts, verified, whole or not at all."""

from __future__ import annotations

import json
import os
import random
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hakaru.cli._options import parse_params
from hakaru.errors import HakaruError
from hakaru.measure._base import load_all
from hakaru.measure.datasets import Reader, Sample, open_dataset
from hakaru.measure.datasets import pack as pack_room
from hakaru.measure.datasets._image_folder import ImageFolder, Namer
from hakaru.measure.datasets._sample import check_name
from hakaru.measure.datasets.pack import Packed, pack

from ..._cli import hakaru
from ._samples import CLASSES, NAMES, make, written


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Class folders as ILSVRC2012 has them, with what else lies about in such folders."""
    source, root = random.Random(2), tmp_path / "images"
    for folder, names in {
        "n02": ["n02_1.JPEG", "n02_10.JPEG", "n02_2.JPEG", ".hidden.jpg", "notes.txt"],
        "n01": ["a.jpg", "a.png", "a.b.jpg", "a_b.jpg", "empty.jpg"],
        "n03.dots": ["x.jpg", "__y__.jpg", "naïve (1).jpg", "deeper/z.jpg"],
        "n04-empty": [],
        ".git": ["c.jpg"],
    }.items():
        (root / folder).mkdir(parents=True)
        for name in names:
            path = root / folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"" if name.startswith("empty") else source.randbytes(700))
    (root / "readme.jpg").write_bytes(b"beside")
    (root / "n02" / "link.jpg").symlink_to(root / "n01" / "a.jpg")
    (root / "n05-link").symlink_to(root / "n01")
    os.mkfifo(root / "n02" / "pipe.jpg")
    return root


def _by_key(reader: Reader) -> dict[str, Sample]:
    return {each.name: each for each in reader}


@pytest.mark.parametrize("layout", NAMES)
def test_an_image_folder_is_packed_with_torchvision_labels(
    layout: str, images: Path, tmp_path: Path
) -> None:
    packed = pack(images, tmp_path / "out", layout)
    found = _by_key(open_dataset(tmp_path / "out"))
    assert list(found) == [
        "n01/a_b.jpg", "n01/a.jpg", "n01/a-1.png", "n01/a_b-1.jpg",
        "n02/n02_1.jpeg", "n02/n02_10.jpeg", "n02/n02_2.jpeg",
        "n03_dots/_y__.jpg", "n03_dots/naïve (1).jpg", "n03_dots/x.jpg", "n03_dots/deeper/z.jpg",
    ]  # fmt: skip
    assert [each.label for each in found.values()] == [0] * 4 + [1] * 3 + [2] * 4
    assert packed.manifest.classes == ("n01", "n02", "n03.dots", "n04-empty")
    assert found["n01/a-1.png"].data == (images / "n01" / "a.png").read_bytes()
    assert found["n03_dots/deeper/z.jpg"].data == (images / "n03.dots/deeper/z.jpg").read_bytes()
    assert packed.class_list is not None
    assert packed.class_list.read_text() == "n01\nn02\nn03.dots\nn04-empty\n"
    assert {reason: each.count for reason, each in packed.skipped.items()} == SKIPPED


SKIPPED = {"beside the class folders": 3, "empty": 1, "hidden": 1, "links": 1, "other extensions": 1,
           "no regular files": 1}  # fmt: skip


def test_what_was_skipped_is_named(images: Path, tmp_path: Path) -> None:
    skipped = pack(images, tmp_path / "out", "tar").skipped
    assert skipped["links"].examples == ["n02/link.jpg"]
    assert skipped["no regular files"].examples == ["n02/pipe.jpg"]
    assert set(skipped["beside the class folders"].examples) == {".git", "n05-link", "readme.jpg"}


def test_a_flat_folder_has_no_classes(tmp_path: Path) -> None:
    (tmp_path / "flat").mkdir()
    for name in ("b.jpg", "a.PNG"):
        (tmp_path / "flat" / name).write_text(name)
    packed = pack(tmp_path / "flat", tmp_path / "out", "zip")
    assert [(each.name, each.label) for each in open_dataset(tmp_path / "out")] == [
        ("a.png", 0), ("b.jpg", 0)
    ]  # fmt: skip
    assert packed.class_list is None
    assert not (tmp_path / "out" / "classes.txt").exists()


def test_extensions_are_chosen(images: Path, tmp_path: Path) -> None:
    pack(images, tmp_path / "text", "tar", extensions=[".TXT"])
    assert list(_by_key(open_dataset(tmp_path / "text"))) == ["n02/notes.txt"]
    (images / "n01" / "label.cls").write_text("7")
    (images / "n01" / "without").write_text("none")
    pack(images, tmp_path / "all", "tar", extensions=["*"])
    assert {"n01/label.bin", "n01/without.bin", "n02/notes.txt"} < set(
        _by_key(open_dataset(tmp_path / "all"))
    )
    with pytest.raises(HakaruError, match=r"has no images \(heic\).*other extensions"):
        pack(images, tmp_path / "none", "tar", extensions=["heic"])


@pytest.mark.parametrize("first", NAMES)
def test_every_layout_becomes_every_other(first: str, tmp_path: Path) -> None:
    samples = make()
    source = written(first, tmp_path / "source", samples)
    for second in NAMES:
        packed = pack(source.folder, tmp_path / second, second)
        again = open_dataset(tmp_path / second)
        assert list(again) == samples
        assert packed.manifest.checksum == source.manifest.checksum
        assert (again.manifest.classes, again.manifest.origin) == (CLASSES, {"kind": "test"})
        assert packed.num_files == len(again.paths())


def test_shard_size_is_for_shards(tmp_path: Path) -> None:
    source = written("files", tmp_path / "source").folder
    assert pack(source, tmp_path / "tar", "tar", shard_bytes=1 << 16).num_files > 2
    with pytest.raises(HakaruError, match="no shards; leave out --shard-size"):
        pack(source, tmp_path / "packed", "packed", shard_bytes=1 << 16)


def test_refuses_targets_that_are_taken_inside_or_links(images: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "alias").symlink_to(images)
    for target, message in (
        (full, "not empty"),
        (full / "mine", "is a file"),
        (images, "not empty"),
        (images / "out", "lies inside"),
        (images / "n01" / "deep" / "out", "lies inside"),
        (tmp_path / "alias" / "out", "lies inside"),
        (tmp_path / "full" / ".." / "images" / "out", "lies inside"),
        (tmp_path / "link", "is a link"),
    ):
        with pytest.raises(HakaruError, match=message):
            pack(images, target, "tar")
    assert [path.name for path in full.iterdir()] == ["mine"]
    assert not (images / "out").exists()


def test_refuses_a_source_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, message in ((tmp_path / "empty", "no images"), (tmp_path / "gone", "no folder")):
        with pytest.raises(HakaruError, match=message):
            pack(source, tmp_path / "out", "tar")
    with pytest.raises(HakaruError, match="no layout"):
        pack(tmp_path / "empty", tmp_path / "out", "cpio")
    assert not (tmp_path / "out").exists()


def test_a_source_that_is_damaged_is_not_packed(tmp_path: Path) -> None:
    reader = written("tar", tmp_path / "source")
    inside = make()[20].data
    path = next(each for each in reader.paths() if inside in each.read_bytes())
    raw = bytearray(path.read_bytes())
    raw[raw.index(inside)] ^= 1
    path.write_bytes(raw)
    with pytest.raises(HakaruError, match="checksum"):
        pack(tmp_path / "source", tmp_path / "out", "packed")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["source"]


def test_a_data_set_whose_manifest_is_damaged_is_not_taken_for_images(tmp_path: Path) -> None:
    folder = written("files", tmp_path / "source").folder
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(HakaruError, match="no data set of Hakaru"):
        pack(folder, tmp_path / "out", "tar")


def test_a_manifest_of_something_else_is_no_hindrance(images: Path, tmp_path: Path) -> None:
    (images / "manifest.json").symlink_to("/dev/zero")
    assert pack(images, tmp_path / "linked", "tar").manifest.num_samples == 11
    (images / "manifest.json").unlink()
    (images / "manifest.json").write_text('{"name": "a web app"}')
    assert pack(images, tmp_path / "other", "tar").manifest.num_samples == 11


@pytest.mark.parametrize("layout", NAMES)
@pytest.mark.parametrize("change", ["bytes", "more", "fewer", "label"])
def test_a_source_that_changes_meanwhile_is_noticed(
    layout: str, change: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ImageFolder.samples

    def then_changed(self: ImageFolder) -> Iterator[Sample]:
        yield from before(self)
        if change == "bytes":
            (images / "n01" / "a.jpg").write_bytes(bytes(700))
        elif change == "more":
            (images / "n04-empty" / "new.jpg").write_bytes(b"new")
        elif change == "fewer":
            (images / "n03.dots" / "deeper" / "z.jpg").unlink()
        else:
            (images / "n02" / "n02_1.JPEG").rename(images / "n01" / "n02_1.JPEG")
        monkeypatch.setattr(ImageFolder, "samples", before)

    monkeypatch.setattr(ImageFolder, "samples", then_changed)
    with pytest.raises(HakaruError, match="Nothing was kept"):
        pack(images, tmp_path / "out", layout)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["images"]


def test_an_interrupted_packing_leaves_nothing(images: Path, tmp_path: Path) -> None:
    for moment in ("writing", "comparing"):

        def stop(what: str, done: int, total: int, moment: str = moment) -> None:
            if what == moment:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            pack(images, tmp_path / "out", "tar", progress=stop)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["images"]


def test_progress_goes_from_writing_to_comparing(images: Path, tmp_path: Path) -> None:
    told = list[tuple[str, int, int]]()
    packed = pack(images, tmp_path / "out", "tar", progress=lambda *each: told.append(each))
    total = packed.manifest.num_bytes
    assert [each[0] for each in told] == ["writing"] * 11 + ["comparing"] * 11
    assert told[10] == ("writing", total, total)
    assert told[-1] == ("comparing", total, total)


def test_what_has_no_space_is_not_begun(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise HakaruError("needs 1 GB")

    monkeypatch.setattr(pack_room, "check_space", full)
    with pytest.raises(HakaruError, match="needs 1 GB"):
        pack(images, tmp_path / "out", "tar")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["images"]


def test_names_become_parts_of_keys_that_differ() -> None:
    namer = Namer()
    names = ["a.b", "a_b", "a_b-1", "..", "", " ", "__x", "_x", "n" * 300, "n" * 301, "犬" * 200,
             "a\nb", "a\udc80b", "\\", "x" * 200]  # fmt: skip
    found = [namer.name(name) for name in names]
    assert len(set(found)) == len(names)
    for part in found:
        check_name(f"{part}/{part}.jpg")


def _packed(images: Path, out: Path, *options: str) -> tuple[int, str]:
    result = hakaru("bench", "pack", images, out, *options)
    return result.exit_code, result.output


def test_the_command_reports_and_names_the_next(images: Path, tmp_path: Path) -> None:
    out = tmp_path / "out folder"
    code, text = _packed(images, out, "--layout", "tar", "--shard-size", "1MiB")
    assert code == 0, text
    assert "11 samples of 4 classes" in text
    assert "all read back and compared with the source" in text
    assert "skipped, links: 1 (n02/link.jpg)" in text
    assert f"classes by label: {out / 'classes.txt'}" in text
    assert f"hakaru bench run loading --param 'path={out}'" in text


@pytest.mark.parametrize("name", ["two words", "a,b", "it's $HOME, a=b;c", "~x"])
def test_the_next_command_finds_the_data_set_whatever_its_name(
    images: Path, tmp_path: Path, name: str
) -> None:
    """A shell takes the path for one word, and `--param` for one value."""
    out = tmp_path / name
    result = hakaru("bench", "pack", images, out, "--layout", "packed", "--format", "json")
    words = shlex.split(json.loads(result.stdout)["next"])
    assert words[:-1] == ["hakaru", "bench", "run", "loading", "--param"]
    given = parse_params([words[-1]], repeated="join")
    assert load_all().get("loading").parse(given) == {"path": [str(out)]}


def test_the_command_gives_json(images: Path, tmp_path: Path) -> None:
    result = hakaru(
        "bench", "pack", images, tmp_path / "out", "--layout", "packed", "--format", "json"
    )
    document = json.loads(result.stdout)
    assert (document["num_samples"], document["layout"]) == (11, "packed")
    assert document["skipped"]["empty"] == {"count": 1, "examples": ["n01/empty.jpg"]}


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--layout", "cpio"], 1, "error: there is no layout 'cpio'"),
        ([], 2, "--layout"),
        (["--layout", "tar", "--shard-size", "lots"], 2, "512MiB|2GB"),
        (["--layout", "tar", "--shard-size", "1MB", "--extensions", ","], 1, "--extensions"),
    ],
)
def test_wrong_options_are_one_clean_line(
    options: list[str], code: int, message: str, images: Path, tmp_path: Path
) -> None:
    found, text = _packed(images, tmp_path / "out", *options)
    assert found == code
    assert any(part in text for part in message.split("|"))
    assert "Traceback" not in text


def test_packed_says_how_long_it_took(images: Path, tmp_path: Path) -> None:
    packed = pack(images, tmp_path / "out", "tar")
    assert isinstance(packed, Packed)
    assert packed.write_s > 0
    assert packed.compare_s > 0
    assert packed.disk_bytes >= packed.manifest.num_bytes
