from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.feedback.clues import find_clues
from sidecar.feedback.matching import PRIOR, confidence_of, find_uses, plain_arguments

MEMORIES = {"a": "The import fails in svc/import/batch.py, see OPS-4412.", "b": "Lunch is at noon."}


def used(output: str, task: str = "", memories: dict[str, str] = MEMORIES, **others: object) -> set[str]:
    return set(find_uses(task, memories, output, **others).confidence)  # type: ignore[arg-type]


def test_a_handle_in_the_output_is_a_use_and_is_told() -> None:
    """Each match says which handle of which memory it was, and of what kind."""
    found = find_uses("", MEMORIES, "Fixed as OPS-4412 says, in svc/import/batch.py.")
    assert {(match.memory_id, match.kind) for match in found.matches} == {("a", "ticket"), ("a", "path")}
    assert set(found.confidence) == {"a"}


def test_a_handle_of_the_task_says_nothing() -> None:
    """What the agent knew anyway is no sign that it read the memory."""
    assert used("OPS-4412 is open.") == {"a"}
    assert used("OPS-4412 is open.", task="What about OPS-4412?") == set()


def test_a_handle_that_two_memories_of_the_packet_bear_credits_neither() -> None:
    """Nobody can tell which of the two was used."""
    assert used("See OPS-1.", memories={"a": "OPS-1 is open", "b": "OPS-1 is old"}) == set()


def test_a_handle_that_many_memories_of_the_namespace_bear_says_nothing() -> None:
    """A project's name that stands everywhere is no handle; one that few bear makes a less sure use than one alone."""
    rare = find_uses("", MEMORIES, "See OPS-4412.", bearing=lambda _: 1, live=1_000).confidence["a"]
    few = find_uses("", MEMORIES, "See OPS-4412.", bearing=lambda _: 9, live=1_000).confidence["a"]
    assert few < rare
    assert used("See OPS-4412.", bearing=lambda _: 11, live=1_000) == set()


@pytest.mark.parametrize(
    ("memory", "other"),
    [
        ("OPS-123 waits", "OPS-1234 is done"),
        ("Use 5.7.9", "Use 5.7.91"),
        ("Use 5.7.9", "Use 15.7.9"),
        ("It is E2047", "It is E204"),
        ("Rule fw-allow-0093 stays", "Rule fw-allow-00931 goes"),
        ("Order 4471-9023 left", "Order 4471-9032 left"),
        ("It costs 100482 yen", "It costs 1004820 yen"),
    ],
)
def test_a_handle_is_found_whole_or_not_at_all(memory: str, other: str) -> None:
    """The beginning of another handle is not this one."""
    assert used(f"So: {memory}.", memories={"a": memory}) == {"a"}
    assert used(other, memories={"a": memory}) == set()


@pytest.mark.parametrize(
    ("memory", "output"),
    [
        ("Due on 2026-07-31.", "Due on July 31, 2026."),
        ("Due on 31.07.2026.", "2026-07-31"),
        ("Call +48 601 555 019.", '{"number": "+48601555019"}'),
        ("It has 5,000 rows.", "All 5000 rows are there."),
        ("The file is C:\\notes\\todo.md", "I opened C:/notes/todo.md"),
        ("Password 'mud-otter-81'", "It is mud-otter-81"),
        ("詳細は BAT-512 を見る", "BAT-512と同じです"),
        ("Ключ у Оксаны Гриценко", "Спросите Гриценко"),
    ],
)
def test_a_handle_is_known_in_another_spelling(memory: str, output: str) -> None:
    """Dates, numbers, separators, quotes and what is joined to a word of another script do not matter."""
    assert used(output, memories={"a": memory}) == {"a"}


def test_more_and_stronger_handles_make_a_surer_use() -> None:
    """One ticket has the prior's mean; two handles are surer, a lone time of day is less so."""
    assert confidence_of(1.0) == pytest.approx(0.8)
    one = find_uses("", MEMORIES, "OPS-4412").confidence["a"]
    two = find_uses("", MEMORIES, "OPS-4412 svc/import/batch.py").confidence["a"]
    weak = find_uses("", {"a": "The train leaves at 6:52."}, "Your train is the 6:52.").confidence["a"]
    assert one == pytest.approx(0.8)
    assert weak < one < two


@given(st.floats(0, 10), st.floats(0, 10), st.integers(0, 500), st.integers(0, 500))
def test_a_confidence_is_a_probability_that_follows_what_reports_confirmed(
    one: float, other: float, confirmed: int, refuted: int
) -> None:
    """It grows with the strength of what was found, and with the share of inferred uses that explicit reports
    confirmed."""
    posterior = (PRIOR[0] + confirmed, PRIOR[1] + refuted)
    assert 0 < confidence_of(one, posterior) < 1
    assert (confidence_of(one) <= confidence_of(other)) or one > other
    assert confidence_of(one, (posterior[0] + 1, posterior[1])) > confidence_of(one, posterior)


def test_a_weak_handle_needs_a_word_beside_it() -> None:
    """A number with its unit may stand anywhere by chance."""
    memory = {"a": "Sessions end after 14 hours."}
    assert used("A session ends after 14 hours.", memories=memory) == {"a"}
    assert used("The flight takes 14 hours.", memories=memory) == set()


def test_memories_without_a_handle_are_not_judged() -> None:
    """That nothing of theirs was found says nothing: they are neither used nor unused."""
    found = find_uses("", MEMORIES, "All is well.")
    assert found.judged == ("a",)
    assert not found.confidence


def test_an_echo_with_a_handle_acted_on_elsewhere_is_a_use() -> None:
    """What is done with a handle counts, although the text was read aloud too; it is never both."""
    memory = {"a": "The gateway drops connections after 350 seconds because GATEWAY_IDLE_LIMIT is in milliseconds."}
    aloud = find_uses("", memory, f"Note: {memory['a']}")
    assert (aloud.echoed, set(aloud.confidence), aloud.judged) == (("a",), set(), ())
    acted = find_uses("", memory, f"Note: {memory['a']}", [("shell", "export GATEWAY_IDLE_LIMIT=350000")])
    assert (acted.echoed, set(acted.confidence)) == ((), {"a"})


def test_tool_calls_in_json_are_read_by_their_values() -> None:
    """Escapes of JSON do not hide a handle; what is no JSON is read as it stands."""
    assert plain_arguments(json.dumps({"path": "a/b", "deep": [{"x": "y\nz"}, 3]})) == "path\na/b\ndeep\nx\ny\nz\n3"
    assert plain_arguments("make ship && echo 'x'") == "make ship && echo 'x'"
    assert used("", tool_calls=[("edit", json.dumps({"file": "svc/import/batch.py"}))]) == {"a"}


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_read(content: str, output: str) -> None:
    """Nothing that an agent writes is an error, and the same input gives the same findings."""
    assert find_uses("", {"a": content}, output) == find_uses("", {"a": content}, output)


def test_clues_of_a_memory_have_a_strength_in_bounds() -> None:
    """Every clue says something, and none more than a ticket."""
    clues = find_clues(
        "Ask Ilse Brandauer on 2026-05-14 at 9:30 about PO 55-7781, 12.5 % off; see `make ship-billing`."
    )
    assert {clue.kind for clue in clues} >= {"name", "date", "number", "code", "quoted"}
    assert all(0 < clue.strength <= 1 for clue in clues)


def test_a_long_output_is_read_in_a_moment() -> None:
    """The time is linear in the output: a mebibyte of log lines takes seconds at most, not minutes."""
    line = "2026-05-14T10:12:13 worker-17 read svc/other/file.py and OPS-1 of 12,345 rows in 14 hours\n"
    memories = {f"m{n}": f"Ticket ABC-{n} of module_{n}/run.py at 6:{n:02} by Ann Smith{n}" for n in range(10, 30)}
    start = time.perf_counter()
    find_uses("", memories, line * (1_000_000 // len(line)))
    assert time.perf_counter() - start < 20
