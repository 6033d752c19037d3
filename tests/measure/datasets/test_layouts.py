"""What every layout must do: give back what was written, in any process, in any order."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from hakaru.errors import HakaruError
from hakaru.measure.datasets import (
    LAYOUTS,
    Reader,
    Sample,
    find_layout,
    layout_names,
    load_all,
    open_dataset,
)
from hakaru.measure.datasets._layout import NAMES as LAYOUT_FILES

from ._samples import CLASSES, NAMES, SHARD, make, written

every_layout = pytest.mark.parametrize("name", NAMES)


def test_the_registry_has_each_file_under_its_name() -> None:
    load_all()
    assert tuple(LAYOUTS.ids()) == LAYOUT_FILES == layout_names()
    assert all(each.reader.layout == each.id for each in LAYOUTS)
    with pytest.raises(HakaruError, match="did you mean tar"):
        find_layout("tarr")


@every_layout
def test_gives_back_what_was_written(name: str, tmp_path: Path) -> None:
    samples = make()
    with written(name, tmp_path / "data", samples) as reader:
        assert list(reader) == samples
        assert [reader.read_checked(index) for index in reversed(range(60))] == samples[::-1]
        assert reader.labels.tolist() == [each.label for each in samples]
        assert reader.lengths.tolist() == [len(each.data) for each in samples]
        assert reader.manifest.classes == CLASSES
        assert reader.manifest.num_bytes == sum(len(each.data) for each in samples)
        assert reader.manifest.origin == {"kind": "test"}
        for index in (-1, 60):
            with pytest.raises(IndexError):
                reader.read(index)


@every_layout
def test_reads_again_after_it_was_closed(name: str, tmp_path: Path) -> None:
    reader = written(name, tmp_path / "data")
    before = reader.read(7)
    reader.close()
    reader.close()
    assert reader.read(7) == before


@every_layout
def test_paths_hold_all_bytes_and_spans_all_samples(name: str, tmp_path: Path) -> None:
    reader = written(name, tmp_path / "data")
    paths = reader.paths()
    assert len(set(paths)) == len(paths)
    assert sum(path.stat().st_size for path in paths) >= reader.manifest.num_bytes
    assert [index for span in reader.spans() for index in span] == list(range(60))
    inside = {path for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert inside - set(paths) <= {
        tmp_path / "data" / each for each in ("manifest.json", "index.bin", "classes.txt")
    }


@pytest.mark.parametrize("name", [each for each in NAMES if find_layout(each).sharded])
def test_shards_are_no_larger_than_asked(name: str, tmp_path: Path) -> None:
    reader = written(name, tmp_path / "data")
    spans = reader.spans()
    assert len(spans) == len(reader.paths()) > 2
    for span in spans:
        assert int(reader.lengths[span.start : span.stop].sum()) <= SHARD


def _read_in_child(reader: Reader, results: multiprocessing.Queue[bytes]) -> None:
    results.put(pickle.dumps([reader.read(index) for index in range(len(reader))]))


@every_layout
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_reads_in_other_processes_while_this_one_reads(
    name: str, start: str, tmp_path: Path
) -> None:
    samples = make()
    reader = written(name, tmp_path / "data", samples)
    reader.read(0)  # its files are open when the others begin
    context = multiprocessing.get_context(start)
    results = context.Queue()
    children = [context.Process(target=_read_in_child, args=(reader, results)) for _ in range(2)]
    for child in children:
        child.start()
    assert list(reader) == samples
    assert [pickle.loads(results.get(timeout=60)) for _ in children] == [samples, samples]
    for child in children:
        child.join()
        assert child.exitcode == 0


@every_layout
def test_a_pickle_is_small_and_finds_its_folder_from_anywhere(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = written(name, Path("data"))
    raw = pickle.dumps(reader)
    assert len(raw) < 1000
    monkeypatch.chdir("/")
    assert pickle.loads(raw).read(3) == make()[3]


@every_layout
def test_one_sample_is_a_data_set(name: str, tmp_path: Path) -> None:
    sample = Sample(b"x", 2, "only")
    assert list(written(name, tmp_path / "data", [sample])) == [sample]


@every_layout
@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "no samples"),
        ([Sample(b"", 0, "a")], "no bytes"),
        ([Sample(b"x", 0, "a"), Sample(b"y", 1, "a")], "same key"),
        ([Sample(b"x", 0, "a"), Sample(b"y", 1, "a", "png")], "same key"),
        ([Sample(b"x", 3, "a")], "label 3"),
        ([Sample(b"x", -1, "a")], "label"),
        ([Sample(b"x", 0, "../a")], "expected a name"),
        ([Sample(b"x", 0, "/a")], "key"),
        ([Sample(b"x", 0, "a/./b")], "expected a name"),
        ([Sample(b"x", 0, "a.b")], "expected a name"),
        ([Sample(b"x", 0, "__meta__/a")], "key"),
        ([Sample(b"x", 0, "a\nb")], "printable"),
        ([Sample(b"x", 0, "a\\b")], "key"),
        ([Sample(b"x", 0, "a", "cls")], "cls"),
        ([Sample(b"x", 0, "a", "j/g")], "ending"),
        ([Sample(b"x", 0, "n" * 201)], "200"),
    ],
)
def test_refuses_samples_that_a_layout_cannot_hold(
    name: str, samples: list[Sample], message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    with pytest.raises(HakaruError, match=message):
        find_layout(name).write(samples, folder, classes=CLASSES)
    with pytest.raises(HakaruError, match=r"no manifest\.json"):
        open_dataset(folder)


@every_layout
def test_an_interrupted_data_set_is_none(name: str, tmp_path: Path) -> None:
    def interrupted() -> Iterator[Sample]:
        yield from make(10)
        raise KeyboardInterrupt

    folder = tmp_path / "data"
    with pytest.raises(KeyboardInterrupt):
        find_layout(name).write(interrupted(), folder)
    with pytest.raises(HakaruError, match="was interrupted"):
        open_dataset(folder)
    with pytest.raises(HakaruError, match="is not empty"):
        find_layout(name).write(make(), folder)


@every_layout
def test_a_process_that_is_killed_leaves_no_data_set(name: str, tmp_path: Path) -> None:
    def endless() -> Iterator[Sample]:
        yield from make(30)
        os.kill(os.getpid(), 9)

    folder = tmp_path / "data"
    child = multiprocessing.get_context("fork").Process(
        target=find_layout(name).write, args=(endless(), folder)
    )
    child.start()
    child.join()
    assert child.exitcode == -9
    assert any(folder.iterdir())
    with pytest.raises(HakaruError, match="was interrupted"):
        open_dataset(folder)


@every_layout
def test_samples_are_written_as_they_come(name: str, tmp_path: Path) -> None:
    """No more than a few are alive at once, so that memory does not grow with the volume."""
    alive = most = 0

    class Counted(bytes):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def samples() -> Iterator[Sample]:
        nonlocal alive, most
        for index in range(200):
            data = Counted(os.urandom(5000))
            alive += 1
            most = max(most, alive)
            yield Sample(data, 0, f"{index}")
            del data

    find_layout(name).write(samples(), tmp_path / "data")
    assert most <= 3


def test_the_checksum_is_that_of_the_contents_alone(tmp_path: Path) -> None:
    samples = make()
    sums = {written(name, tmp_path / name, samples).manifest.checksum for name in NAMES}
    backwards = written("packed", tmp_path / "backwards", samples[::-1])
    assert sums == {backwards.manifest.checksum}
    for changed in (
        Sample(b"other", samples[9].label, samples[9].key),
        Sample(samples[9].data, (samples[9].label + 1) % 3, samples[9].key, samples[9].kind),
        Sample(samples[9].data, samples[9].label, "cat/9999", samples[9].kind),
    ):
        others = [*samples[:9], changed, *samples[10:]]
        reader = written("packed", tmp_path / changed.key.replace("/", "-") / changed.kind, others)
        assert reader.manifest.checksum not in sums
        for path in sorted(reader.folder.iterdir()):
            path.unlink()
        reader.folder.rmdir()


def test_a_shard_size_that_makes_a_file_a_sample_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HakaruError, match="too small"):
        find_layout("tar").write(make(), tmp_path / "data", shard_bytes=100)


def test_a_layout_opens_only_its_own(tmp_path: Path) -> None:
    written("zip", tmp_path / "data")
    with pytest.raises(HakaruError, match="layout 'zip', expected 'tar'"):
        find_layout("tar").open(tmp_path / "data")
