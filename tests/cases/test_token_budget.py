"""Faults of token budgets that were seen elsewhere, tried here."""

from __future__ import annotations

import pytest
from memoryranker.client import Client, RankerRpcError
from memoryranker.v1 import ranker_pb2

from tests.promises.frozen import BY_RELEVANCE, ids, left_out, text

CHINESE = (
    "我们决定把账单服务迁移到新的数据库集群因为旧的机器经常在夜里重启导致对账任务失败运维同事建议先在测试环境里"
    "跑两周确认备份和恢复都没有问题之后再切换生产流量同时保留只读副本供审计查询所有变更都要登记在发布日历里并通知客服"
)


def own_list(sizes: list[int]) -> list[dict[str, object]]:
    """Candidates of those sizes, best first."""
    return [
        {"id": f"m{i}", "content": text(i), "relevance": 1 - i / 100, "token_count": size}
        for i, size in enumerate(sizes, 1)
    ]


def test_tb_02_what_does_not_fit_is_passed_over(client: Client, namespace: str) -> None:
    """Sizes 30, 500, 20 and 10 in a budget of 70: the first, the third and the fourth."""
    candidates = own_list([30, 500, 20, 10])
    packet = client.rank(namespace, candidates=candidates, weights=BY_RELEVANCE, token_budget=70)
    assert ids(packet) == ["m1", "m3", "m4"]
    assert left_out(packet) == {ranker_pb2.LEFT_OUT_REASON_OVERSIZED: 1}


def test_tb_04_no_budget_and_a_budget_of_nothing_are_two_things(client: Client, namespace: str) -> None:
    """0 is an empty packet that says why, -1 is refused, very large and unset give all."""
    candidates = own_list([10, 10])
    empty = client.rank(namespace, candidates=candidates, token_budget=0)
    assert (ids(empty), empty.empty_reason) == ([], ranker_pb2.EMPTY_REASON_BUDGET)
    with pytest.raises(RankerRpcError) as caught:
        client.rank(namespace, candidates=candidates, token_budget=-1)
    assert caught.value.violations[0].field == "token_budget"
    assert len(client.rank(namespace, candidates=candidates, token_budget=10_000_000).items) == 2
    assert len(client.rank(namespace, candidates=candidates).items) == 2


def test_tb_06_chinese_is_not_undercounted(client: Client, namespace: str) -> None:
    """Ten memories of a hundred Chinese characters in a budget of 200: within it by the server's count, which is no
    quarter of the characters but at least one token for each, as with tokenizers that have a token for each."""
    contents = [((CHINESE[i:] + CHINESE[:i]) * 2)[:100] for i in range(0, 100, 10)]
    client.upsert(namespace, [{"id": f"m{i}", "content": content} for i, content in enumerate(contents)])
    packet = client.rank(namespace, "账单服务", token_budget=200, reserved_slots=0)
    assert packet.items
    assert packet.tokens_used <= 200
    for item in client.rank(namespace, max_items=10, reserved_slots=0).items:
        assert item.tokens >= 100
