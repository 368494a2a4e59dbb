"""The rules of counting use, on a running server: by what it ranks, not by the functions behind it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from memoryranker.client import Client
from memoryranker.v1 import types_pb2

from sidecar.config import Settings
from sidecar.domain import DAY, SECOND, Micros
from sidecar.features import FEATURE_NAMES
from sidecar.lifecycle import Sidecar
from tests.serving import Running, running

TASK = "invoice export timeout"
SUBJECTS = ("harbour pilots", "kitchen knives", "physics lectures", "opera tickets", "garden roses", "tunnel workers")


@dataclass(slots=True)
class Clock:
    """A clock that is moved by hand; it begins today, so that what a client sends as now is not far."""

    now: Micros = field(default_factory=lambda: int(datetime.datetime.now(datetime.UTC).timestamp()) * SECOND)

    def __call__(self) -> Micros:
        return self.now


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Running]:
    def make(settings: Settings) -> Sidecar:
        return Sidecar(settings, clock=clock)

    with running(tmp_path_factory.mktemp("counting"), make, embedder="none") as server:
        yield server


@pytest.fixture
def client(server: Running) -> Client:
    return server.client


def write(client: Client, namespace: str, count: int = 3) -> None:
    client.upsert(namespace, [{"id": f"m{n}", "content": f"{TASK} {SUBJECTS[n]}"} for n in range(count)])


def serve(client: Client, namespace: str, session: str, agent: str = "") -> str:
    return client.rank(namespace, TASK, session_id=session, agent_id=agent).packet_id


def rates(client: Client, namespace: str, as_of: datetime.datetime | None = None) -> dict[str, float]:
    """Every memory's use rate, as ranking sees it."""
    items = client.rank(namespace, TASK, explain="full", max_items=100, dry_run=True, as_of_time=as_of).items
    return {item.memory.id: item.features[FEATURE_NAMES.index("use_rate")] for item in items}


def test_what_names_no_use_changes_nothing(client: Client, namespace: str) -> None:
    """A packet without a report, and one with an outcome or an echo, leave every use rate as it was, to the bit."""
    write(client, namespace)
    client.report_use(serve(client, namespace, "s0"), ["m1"])
    before = rates(client, namespace)
    serve(client, namespace, "s1")
    client.report_use(serve(client, namespace, "s2"), channel="packet", outcome=1.0)
    client.report_use(serve(client, namespace, "s3"), ["m2"], channel="echo")
    assert rates(client, namespace) == before


def test_a_second_packet_of_a_session_with_the_same_outcome_changes_nothing(client: Client, namespace: str) -> None:
    """A session gives a memory one pair, and its packets no more."""
    write(client, namespace)
    client.report_use(serve(client, namespace, "s"), ["m1"])
    before = rates(client, namespace)
    for _ in range(3):
        client.report_use(serve(client, namespace, "s"), ["m1"])
    assert rates(client, namespace) == before


@pytest.mark.parametrize("channel", ["explicit", "inferred"])
def test_an_unused_report_never_raises_a_rate(client: Client, namespace: str, channel: str) -> None:
    """Whatever was known before: nothing, uses, doubtful uses, or more sessions of one agent than count."""
    write(client, namespace)
    for number in range(30):
        kind = "explicit" if number % 2 else "inferred"
        packet = serve(client, namespace, f"s{number}")
        client.report_use(packet, ["m1"], channel=kind, complete=True)  # type: ignore[arg-type]
        before = rates(client, namespace)
        packet = serve(client, namespace, f"u{number}")
        client.report_use(packet, unused=["m1", "m2"], channel=channel, complete=False)  # type: ignore[arg-type]
        after = rates(client, namespace)
        assert after["m1"] <= before["m1"]
        assert after["m2"] <= before["m2"]


def test_fifty_uses_in_one_session_never_beat_one_in_each_of_fifty(client: Client, namespace: str) -> None:
    """They never even beat two sessions."""
    write(client, namespace)
    for _ in range(50):
        client.report_use(serve(client, namespace, "one"), ["m0"], complete=False)
        client.report_use(serve(client, namespace, "one"), ["m0"])
    for number in range(50):
        packet = serve(client, namespace, f"s{number}", agent=f"a{number}")
        client.report_use(packet, ["m1"], shown=["m1"])
    found = rates(client, namespace)
    assert found["m1"] > found["m0"] > found["m2"]


@pytest.mark.parametrize("agent", ["", "loud"])
def test_one_agent_weighs_twenty_sessions_at_most(client: Client, namespace: str, agent: str) -> None:
    """However often it reports, and unnamed agents are one; its share stays what it is."""
    write(client, namespace)

    def use(start: int, end: int, who: str) -> None:
        for number in range(start, end):
            client.report_use(serve(client, namespace, f"{who}{number}", who), ["m1"], shown=["m1"])

    use(0, 20, agent)
    full = rates(client, namespace)
    use(20, 60, agent)
    assert rates(client, namespace) == full
    use(0, 5, "another")
    assert rates(client, namespace)["m1"] > full["m1"]


def test_a_late_report_is_kept_and_counts_from_its_arrival_on(client: Client, namespace: str, clock: Clock) -> None:
    """A packet that nobody reported on within a day is UNREPORTED; a report after that makes it LATE, and it counts,
    though not for a time before it came."""
    write(client, namespace)
    start = rates(client, namespace)
    packet = serve(client, namespace, "s")
    assert client.get_packet(namespace, packet).report_state == types_pb2.REPORT_STATE_OPEN
    clock.now += DAY + 5 * SECOND
    assert client.get_packet(namespace, packet).report_state == types_pb2.REPORT_STATE_UNREPORTED
    before = datetime.datetime.fromtimestamp(clock.now / SECOND, datetime.UTC)
    clock.now += 5 * SECOND
    answer = client.report_use(packet, ["m1"])
    assert answer.report_state == types_pb2.REPORT_STATE_LATE
    clock.now += 5 * SECOND
    assert rates(client, namespace)["m1"] > start["m1"]
    assert rates(client, namespace, as_of=before) == start


def test_where_reports_are_slow_the_window_is_longer(client: Client, namespace: str, clock: Clock) -> None:
    """After a hundred packets that were reported on after two days, one of that age is still OPEN, and a report on it
    makes it REPORTED; what was LATE stays so."""
    write(client, namespace)
    packets = [serve(client, namespace, f"s{number}") for number in range(102)]
    clock.now += 2 * DAY
    states = [client.report_use(packet, ["m1"]).report_state for packet in packets[:100]]
    assert states == [types_pb2.REPORT_STATE_LATE] * 100
    assert client.get_packet(namespace, packets[100]).report_state == types_pb2.REPORT_STATE_OPEN
    assert client.report_use(packets[100], ["m1"]).report_state == types_pb2.REPORT_STATE_REPORTED
    assert client.get_packet(namespace, packets[0]).report_state == types_pb2.REPORT_STATE_LATE
    clock.now += SECOND
    assert client.get_packet(namespace, packets[101]).report_state == types_pb2.REPORT_STATE_UNREPORTED
    assert client.get_packet(namespace, packets[100]).report_state == types_pb2.REPORT_STATE_REPORTED
    assert client.report_use(packets[101], ["m1"]).report_state == types_pb2.REPORT_STATE_LATE


def test_a_hundred_reports_at_a_time_give_exactly_the_right_counts(client: Client, namespace: str) -> None:
    """On one packet, from many threads, in any order: what stands is what stands if they come one by one."""
    write(client, namespace, 6)
    write(client, f"{namespace} one by one", 6)
    reports = [
        {
            "used": [f"m{number % 5}"] if number % 3 else [],
            "unused": [f"m{(number + 1) % 5}"] if number % 4 == 0 else [],
            "channel": ("explicit", "inferred", "echo", "explicit")[number % 4],
            "complete": number % 2 == 0,
            "sequence": number,
        }
        for number in range(100)
    ]
    parallel = serve(client, namespace, "s")
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda report: client.report_use(parallel, **report), reports))
    serial = serve(client, f"{namespace} one by one", "s")
    for report in reports:
        client.report_use(serial, **report)  # type: ignore[arg-type]

    def known(where: str, packet: str) -> list[tuple[str, int, bool, float]]:
        uses = client.get_packet(where, packet).uses
        return sorted((use.memory_id, use.channel, use.used, use.confidence) for use in uses)

    assert known(namespace, parallel) == known(f"{namespace} one by one", serial)
    assert rates(client, namespace) == rates(client, f"{namespace} one by one")


def test_a_hundred_sessions_reported_at_a_time_are_all_counted(client: Client, namespace: str) -> None:
    """Many at a time lose none of each other's counts."""
    write(client, namespace)
    packets = [serve(client, namespace, f"s{number}", f"a{number % 10}") for number in range(100)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda packet: client.report_use(packet, ["m1"]), packets))
    # Ten agents of ten sessions each: all used m1, none the others; the first prior is 0.2 of ten sessions.
    found = rates(client, namespace)
    assert found["m1"] == pytest.approx((100 + 2) / 110)
    assert found["m0"] == found["m2"] == pytest.approx(2 / 110)


def test_a_rescore_in_the_background_loses_nothing(server: Running, namespace: str) -> None:
    """Memories and reports that are written while runs read, work and write are all there afterwards."""
    client = server.client
    write(client, namespace)

    def rescore() -> None:
        with Client(server.listen, timeout=30) as own:
            for _ in range(15):
                own.restore_scores(own.rescore(apply=True).run_id)

    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(rescore)
        for number in range(60):
            client.upsert(namespace, [{"id": f"new{number}", "content": f"note {number}"}])
            client.update(namespace, "m0", tags=[f"t{number}"])
            client.report_use(serve(client, namespace, f"s{number}", f"a{number % 6}"), ["m1"], shown=["m1"])
        job.result()
    assert len(list(client.list(namespace))) == 63
    assert list(client.get(namespace, "m0").tags) == ["t59"]
    mu, kappa = 0.2, 10.0
    assert rates(client, namespace)["m1"] == pytest.approx((60 + kappa * mu) / (60 + kappa))


def test_how_much_one_agent_weighs_is_a_setting(tmp_path: Path) -> None:
    """Set anew, it counts from the next start on, for what was reported before as well, and moves every score
    version; a start with the same setting moves nothing."""

    def look(sessions: int) -> tuple[dict[str, float], int]:
        with running(tmp_path, embedder="none", use_agent_session_cap=sessions) as server:
            client = server.client
            if not list(client.list("n")):
                write(client, "n")
                for number in range(10):
                    client.report_use(serve(client, "n", f"s{number}"), ["m1"], shown=["m1"])
            return rates(client, "n"), client.status("n").namespace.score_version

    wide, first = look(20)
    narrow, second = look(5)
    assert wide["m1"] == pytest.approx((10 + 2) / 20)
    assert narrow["m1"] == pytest.approx((5 + 2) / 15)
    assert second == first + 1
    assert look(5) == (narrow, second)
    assert look(20)[0] == wide
