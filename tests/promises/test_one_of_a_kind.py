"""Nothing takes two places, in any script; what was replaced never stands beside its replacement."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memoryranker.client import Client
from memoryranker.v1 import ranker_pb2, types_pb2

from tests.promises.frozen import BY_RELEVANCE, days_ago, frozen, ids, left_out, text
from tests.promises.models import Links, survivors

SAID = {
    "latin": "The staging database moved to the harbour rack last spring",
    "cyrillic": "Стенд переехал в портовую стойку прошлой весной",
    "greek": "Η βάση δοκιμών μεταφέρθηκε στο λιμάνι την άνοιξη",
    "arabic": "انتقلت قاعدة البيانات التجريبية إلى الميناء في الربيع",
    "hebrew": "מסד הנתונים עבר לארון השרתים בנמל באביב",
    "devanagari": "परीक्षण डेटाबेस वसंत में बंदरगाह के रैक पर चला गया",
    "thai": "ฐานข้อมูลทดสอบย้ายไปที่ท่าเรือเมื่อฤดูใบไม้ผลิ",
    "chinese": "测试数据库去年春天搬到了港口的机架上",
    "japanese": "テスト用データベースは去年の春に港のラックへ移りました",
    "korean": "시험 데이터베이스는 작년 봄에 항구의 랙으로 옮겼다",
    "emoji": "🚢🏗️🌷🧪💾📦",
    "code": "kubectl rollout restart deploy/ferry --namespace harbour",
}
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper": str.upper,
    "composed": lambda said: unicodedata.normalize("NFC", said),
    "decomposed": lambda said: unicodedata.normalize("NFKD", said),
    "full stop": lambda said: f"{said}.",
    "quoted": lambda said: f"“{said}”",
    "indented": lambda said: f"\n\t{said}  \n",
    "wide spaces": lambda said: said.replace(" ", "\u3000\n"),
    "marked": lambda said: f"\ufeff{said}\u200f",
    "dashes": lambda said: said.replace(" ", " — "),
    "wide": lambda said: "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalpha() else c for c in said),
}
THROUGH_THE_SERVICE = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a server that stands still."""
    with frozen(tmp_path_factory.mktemp("server")) as server:
        yield server.client


@THROUGH_THE_SERVICE
@given(data=st.data(), slots=st.integers(0, 2), budget=st.none() | st.integers(20, 200))
def test_near_duplicates_never_take_two_places(
    client: Client, data: st.DataObject, slots: int, budget: int | None
) -> None:
    """Whatever the script, the form and the segment: of all that says the same, one is in the packet."""
    said = data.draw(
        st.lists(
            st.tuples(st.sampled_from(sorted(SAID)), st.sampled_from(sorted(FORMS)), st.integers(0, 4)),
            min_size=2,
            max_size=16,
        )
    )
    candidates = [
        {
            "id": f"{i} {language} {form}",
            "content": FORMS[form](SAID[language]),
            "relevance": 0.6 + i / 100,
            "token_count": 8,
            "pinned": pinned == 0,
        }
        for i, (language, form, pinned) in enumerate(said)
    ]
    packet = client.rank(
        "own",
        candidates=candidates,
        weights=BY_RELEVANCE,
        max_items=14,
        reserved_slots=slots,
        token_budget=budget,
        explain="none",
    )
    languages = [item.memory.id.split()[1] for item in packet.items]
    assert len(set(languages)) == len(languages)
    if budget is None:
        missing = {language for language, *_ in said} - set(languages)
        assert len(missing) <= max(0, len({language for language, *_ in said}) - (14 - slots))
    pool = client.get_packet("own", packet.packet_id).undrawn
    pooled = [member.memory_id.split()[1] for member in pool]
    assert len(set(pooled)) == len(pooled)
    assert not set(pooled) & set(languages)


@pytest.mark.parametrize("language", sorted(SAID))
def test_every_form_of_a_text_says_the_same(client: Client, language: str) -> None:
    """One of all forms is served, the best; the others are counted as near-duplicates."""
    forms = [
        {"id": name, "content": form(SAID[language]), "relevance": 0.9 - i / 100}
        for i, (name, form) in enumerate(FORMS.items())
    ]
    packet = client.rank("own", candidates=forms, weights=BY_RELEVANCE, max_items=20)
    assert ids(packet) == ["as it is"]
    assert left_out(packet) == {ranker_pb2.LEFT_OUT_REASON_NEAR_DUPLICATE: len(FORMS) - 1}


def test_what_says_something_else_is_served(client: Client) -> None:
    """No two of the texts in twelve scripts are taken for one another, nor two facts that differ in a number."""
    others = [*SAID.values(), "The limit of the ferry upload is 500", "The limit of the ferry upload is 600"]
    candidates = [{"id": f"m{i}", "content": said} for i, said in enumerate(others)]
    packet = client.rank("own", candidates=candidates, max_items=20)
    assert len(packet.items) == len(others)


@st.composite
def links(draw: st.DrawFn) -> Links:
    """Id -> (what replaces it, "" for nothing; when it was learned; whether it is valid)."""
    names = [f"m{i}" for i in range(draw(st.integers(1, 7)))]
    return {
        name: (
            draw(st.sampled_from(["", "gone", *names])),
            draw(st.integers(1, 3)),
            draw(st.booleans()),
        )
        for name in names
    }


@THROUGH_THE_SERVICE
@given(replaced_by=links())
def test_what_was_replaced_is_not_served(client: Client, replaced_by: Links) -> None:
    """Through chains and cycles, past expired replacements and ones that are gone: as an oracle says that goes link by
    link."""
    candidates: list[dict[str, Any]] = [
        {
            "id": name,
            "content": text(i),
            "superseded_by": by,
            "create_time": days_ago(age),
            "valid_until_time": None if is_valid else days_ago(0),
        }
        for i, (name, (by, age, is_valid)) in enumerate(replaced_by.items())
    ]
    packet = client.rank("own", candidates=candidates, max_items=20, explain="none")
    assert set(ids(packet)) == survivors(replaced_by)


def test_a_replacement_stands_alone_in_every_segment(client: Client, namespace: str) -> None:
    """Old and new are never together, also if the old one is pinned or would be drawn; when the new one is deleted the
    old one is back."""
    client.upsert(
        namespace,
        [
            {"id": "oldest", "content": text(1), "superseded_by": "old", "pinned": True},
            {"id": "old", "content": text(2), "superseded_by": "new"},
            {"id": "new", "content": text(3)},
            {"id": "other", "content": text(4)},
        ],
    )
    for _ in range(5):
        packet = client.rank(namespace, max_items=6, reserved_slots=2)
        assert set(ids(packet)) == {"new", "other"}
        assert left_out(packet) == {ranker_pb2.LEFT_OUT_REASON_SUPERSEDED: 2}
    client.delete(namespace, ["new"])
    assert set(ids(client.rank(namespace))) == {"old", "other"}
    client.delete(namespace, ["old"])
    packet = client.rank(namespace)
    assert ids(packet, types_pb2.SEGMENT_PINNED) == ["oldest"]
    client.upsert(namespace, [{"id": "old", "content": text(5)}])
    assert set(ids(client.rank(namespace))) == {"old", "other"}


def test_a_cycle_leaves_the_one_that_was_learned_last(client: Client, namespace: str) -> None:
    """Two memories that replace each other do not both vanish."""
    client.upsert(
        namespace,
        [
            {"id": "a", "content": text(1), "superseded_by": "b", "create_time": days_ago(1)},
            {"id": "b", "content": text(2), "superseded_by": "a", "create_time": days_ago(2)},
        ],
    )
    assert ids(client.rank(namespace)) == ["a"]
