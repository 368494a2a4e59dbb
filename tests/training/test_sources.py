from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sidecar.domain import Channel, LeftOutReason
from sidecar.errors import NotFoundError, StoreDamagedError, StoreNotFoundError, StoreUnavailableError
from sidecar.store.log import LogRow
from sidecar.store.log_rows import write_row
from sidecar.store.store import Store
from tests.training.logs import HOUR, START, features_of, make_packet, make_report
from tests.training.test_dataset import PLAIN, same
from training.dataset import Cutoffs, build_dataset
from training.parquet import write_parquet
from training.sources import Progress, UnreadableLogError, read_source


def log() -> list[LogRow]:
    """Packets of two namespaces with pools and reports on every channel."""
    rows: list[LogRow] = []
    for number in range(30):
        name = f"p{number:02}"
        raw = [np.array([*np.random.default_rng(number).random(8)])[: len(_RAW)] for _ in PLAIN]
        rows.append(
            make_packet(
                name,
                PLAIN,
                ids=["a", "ß", "c"],
                raw=raw,
                pool=[features_of({"lexical": 1 / 3})],
                namespace="n" if number % 3 else "other",
                session_id=f"s{number // 2}",
                create_time=START + number,
                token_budget=100 if number % 2 else None,
                left_out={LeftOutReason.BUDGET: 3},
            )
        )
        if number % 4 == 0:
            rows.append(make_report(name, ["a"], shown=["a", "ß"], sequence=number, at=START + HOUR + number))
        if number % 4 == 1:
            rows.append(make_report(name, ["ß"], channel=Channel.INFERRED, confidence=0.7, complete=False))
        if number % 5 == 0:
            rows.append(make_report(name, channel=Channel.PACKET, outcome=0.3))
    return rows


_RAW = make_packet("x", PLAIN).items[0].raw


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Path]:
    """The same log in a store that is open for writing, as beside a server."""
    folder = tmp_path / "data"
    with Store.open(folder) as store:
        for number, row in enumerate(log()):
            owner = next(each for each in log() if getattr(each, "packet_id", "") == row.packet_id)  # type: ignore[union-attr]
            outcome = store.take_log_rows(owner.namespace, [(number, row)])  # type: ignore[union-attr]
            assert outcome.rejected == []
        yield folder


def test_every_reader_gives_the_same_data_set(stored: Path, tmp_path: Path) -> None:
    """A store in use, its file, an export in JSON Lines and Parquet: the same data set, bit for bit."""
    wanted = build_dataset(log())
    lines = tmp_path / "log.jsonl"
    memory = b'{"id":"m","content":"mentions \\"packet_id\\" and no more"}\n'
    owner = {row.packet_id: row.namespace for row in log() if hasattr(row, "namespace")}  # type: ignore[union-attr]
    written = [write_row(owner[row.packet_id], row) for row in log()]  # type: ignore[union-attr]
    lines.write_bytes(b'{"type":"export","version":1}\n' + memory + b"".join(written))
    table = tmp_path / "log.parquet"
    assert write_parquet(table, log()) == len(log())
    for path in (stored, stored / "memories.db", lines, table):
        heard: list[int] = []
        found = build_dataset(read_source(path, progress=_hearing(heard)))
        assert same(found, wanted), path
        assert heard[-2] == heard[-1] > 0


def _hearing(heard: list[int]) -> Progress:
    return lambda done, total: heard.extend((done, total))


def test_a_namespace_and_a_window_are_read_alone(stored: Path, tmp_path: Path) -> None:
    """Reading less is the same as building from less."""
    table = tmp_path / "log.parquet"
    write_parquet(table, log())
    window = Cutoffs(event=START + 20, ingest=START + 2 * HOUR, from_time=START + 4)
    for path in (stored, table):
        found = build_dataset(read_source(path, "other", window), window)
        assert set(found.packets.namespace) == {"other"}
        assert found.packets.packet_id == tuple(f"p{n:02}" for n in range(4, 20) if n % 3 == 0)


def test_a_namespace_without_a_packet_is_told(stored: Path, tmp_path: Path) -> None:
    """By whichever reader; one that has packets outside the window alone is there, and gives none."""
    table = tmp_path / "log.parquet"
    write_parquet(table, log())
    early = Cutoffs(event=START - 1)
    for path in (stored, table):
        with pytest.raises(NotFoundError, match="no packet of 'nosuch'"):
            list(read_source(path, "nosuch"))
        assert not build_dataset(read_source(path, "other", early), early).packets.packet_id


def test_parquet_keeps_numbers_that_are_none(tmp_path: Path) -> None:
    """NaN comes back as NaN, and what JSON cannot tell apart neither."""
    odd = features_of({"semantic": math.nan, "lexical": 5e-324})
    write_parquet(tmp_path / "odd.parquet", [make_packet("p", [odd])])
    (row,) = read_source(tmp_path / "odd.parquet")
    assert row.items[0].features.tobytes() == odd.tobytes()  # type: ignore[union-attr]


def test_a_log_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """The file and the line are named; nothing is trained on half a log."""
    with pytest.raises(StoreNotFoundError, match="there is no log"):
        list(read_source(tmp_path / "none.jsonl"))
    with pytest.raises(StoreNotFoundError, match="there is no store"):
        list(read_source(tmp_path))
    (tmp_path / "bad.jsonl").write_bytes(
        write_row("n", make_packet("p", PLAIN)) + b'{"type":"report","packet_id":"p"\n'
    )
    with pytest.raises(UnreadableLogError, match="line 2"):
        list(read_source(tmp_path / "bad.jsonl"))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(UnreadableLogError, match="export-log"):
        list(read_source(tmp_path / "bad.parquet"))
    (tmp_path / "other.db").write_bytes(b"SQLite format 3\0")
    with pytest.raises((StoreDamagedError, StoreUnavailableError)):
        list(read_source(tmp_path / "other.db"))
    wrong = replace(make_report("p"), outcome=7.0)
    (tmp_path / "wrong.jsonl").write_bytes(write_row("n", wrong))
    with pytest.raises(UnreadableLogError, match="outcome is 7"):
        list(read_source(tmp_path / "wrong.jsonl"))


def test_a_line_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    """A report before its packet's id, a packet, a memory, or a line that the next was written behind: each by its
    number. What the log says of other things is passed over."""
    packet, report = write_row("n", make_packet("p", PLAIN)), write_row("n", make_report("p", ["p-m0"]))
    memory = b'{"id":"m","content":"a note","metadata":{"a":"b"}}\n'
    cut = report[: report.index(b'"packet_id"') - 5]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"type":"export"}\n' + memory + b'{"type":"rating"}\n\n' + packet + report)
    assert len(list(read_source(path))) == 2
    for tail in (cut, cut + b"\n", cut + memory, packet[:-9], memory[:-2], memory[:-9] + b"\n", memory[:-2] + report):
        path.write_bytes(packet + memory + tail)
        with pytest.raises(UnreadableLogError, match="line 3: is not one JSON object"):
            list(read_source(path))


def test_a_log_of_reports_alone_is_refused(tmp_path: Path) -> None:
    """Their packets are not there, so that they say nothing; reports before their packets are read."""
    packet, report = make_packet("p", PLAIN), make_report("p", ["p-m0"])
    path = tmp_path / "log.jsonl"
    path.write_bytes(write_row("n", report))
    with pytest.raises(UnreadableLogError, match="1 report and no packet: they belong to none"):
        list(read_source(path))
    path.write_bytes(write_row("n", report) + write_row("n", packet))
    assert build_dataset(read_source(path)).packets.reported.tolist() == [True]


def test_a_memory_with_too_few_numbers_or_no_chance_is_refused(tmp_path: Path) -> None:
    """By packet, memory and field, in every kind of log; those of other features may have as many as they like."""
    short = make_packet("p7", PLAIN, raw=[np.zeros(1)] * len(PLAIN))
    words = r"'p7': items\[0\].raw has 1 number; must have 8"
    (tmp_path / "log.jsonl").write_bytes(write_row("n", make_packet("p", PLAIN)) + write_row("n", short))
    write_parquet(tmp_path / "log.parquet", [make_packet("p", PLAIN), short])
    with Store.open(tmp_path / "data") as store:
        assert store.take_log_rows("n", [(1, short)]).rejected == []
    for name, where in (("log.jsonl", "line 2"), ("log.parquet", "row 2"), ("data", "data")):
        with pytest.raises(UnreadableLogError, match=f"{where}: packet {words}"):
            list(read_source(tmp_path / name))
    write_parquet(tmp_path / "log.parquet", [replace(short, feature_schema_hash="old")])
    assert len(list(read_source(tmp_path / "log.parquet"))) == 1
    packet = make_packet("p", PLAIN)
    never = replace(packet, items=(packet.items[0], replace(packet.items[1], inclusion_propensity=0.0)))
    write_parquet(tmp_path / "log.parquet", [never])
    with pytest.raises(UnreadableLogError, match=r"row 1: items\[1\].inclusion_propensity is 0.0; must be"):
        list(read_source(tmp_path / "log.parquet"))
    endless = replace(packet, items=(replace(packet.items[0], contributions=np.full(16, np.inf)),))
    write_parquet(tmp_path / "log.parquet", [endless])
    with pytest.raises(UnreadableLogError, match=r"row 1: items\[0\].contributions is .inf.*finite"):
        list(read_source(tmp_path / "log.parquet"))
