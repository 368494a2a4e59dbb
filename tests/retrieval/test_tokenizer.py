"""Tokens of tasks and memories, in any script."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.retrieval.tokenizer import is_stop_word, normalize, task_words, tokenize


def terms(text: str) -> list[str]:
    return [token.term for token in tokenize(text)]


def found(task: str, memory: str) -> bool:
    """All the task's terms are among the memory's."""
    return bool(terms(task)) and set(terms(task)) <= set(terms(memory))


IDENTIFIERS = "call ops_tools.rotateApiKey from svc/auth-gw/rotate.py since v1.2.3, see OPS-1234 and C:\\notes\\todo"


@pytest.mark.parametrize(
    "task",
    [
        "rotateApiKey",
        "rotateapikey",
        "rotate api key",
        "ops_tools",
        "ops_tools.rotateApiKey",
        "svc/auth-gw/rotate.py",
        "auth-gw",
        "auth gw",
        "rotate.py",
        "OPS-1234",
        "ops-1234",
        "1234",
        "v1.2.3",
        "C:\\notes\\todo",
        "todo",
    ],
)
def test_an_identifier_is_found_whole_and_by_its_parts(task: str) -> None:
    """Every identifier stored word for word is found by itself, by its parts, and in lower case."""
    assert found(task, IDENTIFIERS)


def test_an_identifier_gives_itself_as_a_term() -> None:
    """The whole identifier is rarer than its parts, so it must be a term of its own."""
    for whole in (
        "ops_tools.rotateapikey",
        "ops_tools",
        "rotateapikey",
        "svc/auth-gw/rotate.py",
        "auth-gw",
        "ops-1234",
    ):
        assert whole in terms(IDENTIFIERS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("APIs", ["api"]),
        ("kebab-case-name", ["kebab-case-name", "kebab", "case", "name"]),
        ("10,000 rows", ["10000", "row"]),
        ("Ann's key", ["ann", "key"]),
        ("Ann’s key", ["ann", "key"]),
        ("O'Brien", ["o", "brien"]),
        ("_private__name_", ["private__name", "privat", "name"]),
        ("running runs", ["run", "run"]),
        ("🧠 done 👍🏽", ["🧠", "done", "👍"]),
        ("...", []),
        ("", []),
        (" \t\n\u200b", []),
        ("ไป\u200bนา", ["ไป", "นา"]),
        ("ទៅ\u200bផ្ទះ", ["ទៅ", "ផ្ទះ"]),
    ],
)
def test_tokens_of_small_texts(text: str, expected: list[str]) -> None:
    """What common spellings come to."""
    assert terms(text) == expected


def test_nothing_matches_as_a_substring() -> None:
    """log is not in dialog, art not in start."""
    assert not found("log", "a dialog box")
    assert not found("art", "we start now")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Smörgås order for Zoë", "Smorgas order for Zoe"),
        ("Łódź café", "Lodz cafe"),
        ("Straße", "STRASSE"),
        ("Ёлка", "елка"),
        ("Ｒｏｔａｔｅ", "rotate"),
        ("ﬁle", "file"),
        ("ﾃﾚﾋﾞ", "テレビ"),
        ("résumés", "resumes"),
        ("co\u00adoperate", "cooperate"),
        ("می\u200cخواهم", "میخواهم"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_spellings_of_one_word_give_the_same_terms(one: str, other: str) -> None:
    """Case, accents, width and invisible characters do not part a word from itself."""
    assert terms(one) == terms(other)


def test_a_row_of_ligatures_is_not_spelled_out_without_end() -> None:
    """One is found by what it stands for; tens of thousands come to a few times their number."""
    assert terms("ﷺ") == terms("صلى الله عليه وسلم")
    assert len(normalize("ﷺ" * 20_000)) < 5 * 20_000


@given(st.text(max_size=60))
def test_composed_and_decomposed_forms_give_the_same_terms(text: str) -> None:
    """NFC and NFD of a text are one text."""
    assert terms(unicodedata.normalize("NFC", text)) == terms(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize(
    ("task", "memory", "other"),
    [
        ("กาแฟ", "ฉันชอบดื่มกาแฟทุกเช้า", "ขนุน"),
        ("ชา", "ฉันชอบดื่มชาเขียว", "น้ำ"),
        ("猫", "私は猫が好きです", "犬が好き"),
        ("コーヒー", "毎朝コーヒーを飲む", "お茶を飲む"),
        ("咖啡", "我每天早上喝咖啡", "我喜欢茶"),
        ("커피", "아침마다 커피를 마신다", "차를 좋아한다"),
        ("ກາເຟ", "ຂ້ອຍມັກດື່ມກາເຟ", "ນ້ຳ"),
        ("ကော်ဖီ", "မနက်တိုင်းကော်ဖီသောက်တယ်", "ရေ"),
        ("កាហ្វេ", "ខ្ញុំចូលចិត្តកាហ្វេ", "ទឹក"),
        ("हिन्दी", "मुझे हिन्दी भाषा पसंद है", "अंग्रेज़ी"),
        ("iPhone", "新しいiPhoneを買った", "新しい車を買った"),
        ("OPS-1234", "OPS-1234を確認する", "OPS-999を確認する"),
    ],
)
def test_a_word_is_found_inside_running_text_of_its_script(task: str, memory: str, other: str) -> None:
    """Scripts without spaces, particles and vowel signs: the word is found in a sentence, not in another's."""
    assert found(task, memory)
    assert not found(task, other)


def test_stop_words_are_kept_and_flagged() -> None:
    """Stop words are tokens like others, and the flag depends on the term alone."""
    tokens = tokenize("What does the rotated key do, when?")
    assert [token.term for token in tokens if token.is_stop_word] == ["what", "does", "the", "do", "when"]
    assert [token.term for token in tokens if not token.is_stop_word] == ["rotat", "key"]


@given(st.text(max_size=80))
def test_the_flag_and_the_terms_are_well_formed(text: str) -> None:
    """Terms are not empty, have no white space, and carry the flag of their term."""
    for token in tokenize(text):
        assert token.term
        assert token.term.split() == [token.term]
        assert token.is_stop_word == is_stop_word(token.term)


@given(st.text(max_size=80))
def test_words_of_a_task_cover_its_tokens(text: str) -> None:
    """The words point at distinct tokens, and every token of the text belongs to a word."""
    tokens, words = task_words(text)
    assert len(set(tokens)) == len(tokens)
    assert {index for word in words for index in word.terms} == set(range(len(tokens)))
    assert all(word.length >= 1 and word.terms for word in words)
    assert set(tokens) == set(tokenize(text))


def test_words_are_counted_as_a_person_counts_them() -> None:
    """Words stand between white space; punctuation around them is not counted, punctuation alone is no word."""
    tokens, words = task_words("Who calls rotateApiKey? - the bot calls")
    assert [word.length for word in words] == [3, 5, 12, 3, 3, 5]
    assert words[1].terms == words[5].terms
    assert [tokens[index].term for index in words[2].terms] == ["rotateapikey", "rotat", "api", "key"]


@pytest.mark.parametrize(
    "unit", ["a", "a_", "a.", "a-", "aA", "1,", "a'", "a://", "a\u0301", "\u0301", "猫", "ก", "ก้", "🧠", " ", "é", "á/"]
)
def test_time_is_linear(unit: str) -> None:
    """A long text of any repeated pattern is read in a moment: no pattern backtracks."""
    start = time.perf_counter()
    tokenize(unit * (300_000 // len(unit)))
    assert time.perf_counter() - start < 10
