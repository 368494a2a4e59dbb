"""Near-duplicates in any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.retrieval.duplicates import (
    THRESHOLD,
    Fingerprint,
    Fingerprints,
    Outlines,
    Seen,
    is_alike,
    is_near_duplicate,
    outlines_of,
)
from sidecar.retrieval.hashing import PLAIN, Hasher

SENTENCES = (
    "The deployment of the billing service failed because the key had expired",
    "Развёртывание сервиса биллинга не удалось, потому что ключ истёк",
    "فشل نشر خدمة الفوترة لأن المفتاح انتهت صلاحيته",
    "बिलिंग सेवा की तैनाती विफल रही क्योंकि कुंजी समाप्त हो गई थी",
    "การปรับใช้บริการเรียกเก็บเงินล้มเหลวเพราะกุญแจหมดอายุ",
    "キーの有効期限が切れていたため、課金サービスのデプロイに失敗しました",
    "由于密钥已过期，计费服务的部署失败了",
    "키가 만료되어 결제 서비스 배포에 실패했습니다",
    "Η ανάπτυξη της υπηρεσίας χρέωσης απέτυχε επειδή το κλειδί είχε λήξει",
)


def same(a: str, b: str) -> bool:
    answer = is_near_duplicate(Fingerprint.of(a), Fingerprint.of(b))
    assert answer == is_near_duplicate(Fingerprint.of(b), Fingerprint.of(a))
    return answer


@pytest.mark.parametrize("text", SENTENCES)
def test_forms_and_small_edits_of_a_sentence_are_found_in_every_script(text: str) -> None:
    """Case, punctuation, spacing, Unicode form and width leave a sentence the same."""
    for variant in (
        text.upper(),
        f"  {text}!!  ",
        f"«{text}»…".replace(" ", " \n\t"),
        unicodedata.normalize("NFD", text),
        unicodedata.normalize("NFKD", text),
        text + " ok" * (len(text) > 40),
        text.replace(" ", ""),
        " ".join(text),
        "\u200b".join(text),
        f"\ufeff{text[:5]}\u00ad{text[5:]}\u200f",
    ):
        assert same(text, variant), variant


def test_other_sentences_are_not_the_same() -> None:
    """Two different sentences are never near-duplicates, in any pair of scripts."""
    for a in SENTENCES:
        assert [b for b in SENTENCES if same(a, b)] == [a]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("the limit of the upload service is 500", "the limit of the upload service is 600"),
        ("the limit of the upload service is 1.5", "the limit of the upload service is 15"),
        ("the limit of the upload service is -5", "the limit of the upload service is 5"),
        ("the service moved from 2 to 33", "the service moved from 2 to 3"),
        ("上传服务的限制是五百个文件 ５００", "上传服务的限制是五百个文件 ６００"),
        ("deploy version v1.2.3 of the service", "deploy version v1.2.4 of the service"),
        ("limit 500 for the service", "limit for the service"),
    ],
)
def test_other_numbers_are_other_facts(a: str, b: str) -> None:
    """However alike the words, a different number makes a different fact."""
    assert not same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("PostgreSQL is the database for the billing service", "MySQL is the database for the billing service"),
        ("The new checkout flow is enabled in production", "The new checkout flow is disabled in production"),
        ("Maria is allergic to peanuts and shellfish", "Maria is not allergic to peanuts and shellfish"),
        ("Maria doesn't like the new dashboard layout", "Maria does like the new dashboard layout"),
        ("The production signing key is rotated by Kim", "The production signing key is rotated by Tim"),
        ("The deploy key is valid for this repository", "The deploy key is invalid for this repository"),
        ("turn the flag on for tenants in production", "turn the flag off for tenants in production"),
        ("We use C++ for the parser here", "We use C# for the parser here"),
        ("if (retries == max) return fail", "if (retries != max) return fail"),
        ("the total is a = b + c for every row", "the total is a = b - c for every row"),
        ("Use plan A for the cut-over of the booking bus", "Use plan B for the cut-over of the booking bus"),
        ("Martin owns the invoice pipeline", "Martina owns the invoice pipeline"),
        ("he approves the release train on Mondays", "she approves the release train on Mondays"),
        ("Maria reviews the code of Tomas", "Tomas reviews the code of Maria"),
        ("デプロイの前に必ずワーカーを停止する", "デプロイの後に必ずワーカーを停止する"),
        ("タイムアウトは三十秒に設定する", "タイムアウトは五十秒に設定する"),
        ("发布之前先通知甲方的负责人", "发布之前先通知乙方的负责人"),
        ("แจ้งทีมเอก่อนปล่อยเวอร์ชันใหม่", "แจ้งทีมบีก่อนปล่อยเวอร์ชันใหม่"),
        ("Palvelu käynnistetään yöllä uudelleen", "Palvelu ei käynnistetä yöllä uudelleen"),
        ("Der Zugang zum Archiv ist nicht gesperrt", "Der Zugang zum Archiv ist gesperrt"),
        ("这个服务在生产环境里可以重启", "这个服务在生产环境里不可以重启"),
        ("このサービスは本番環境で再起動できる", "このサービスは本番環境で再起動できない"),
        ("บริการนี้รีสตาร์ทในระบบจริงได้", "บริการนี้รีสตาร์ทในระบบจริงไม่ได้"),
    ],
)
def test_a_contradiction_is_not_the_same(a: str, b: str) -> None:
    """A negation, an opposite or another name makes another fact, however alike the rest."""
    assert not same(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("The deploy script lives in the tools folder", "Deploy script lives in tools folder."),
        ("Deploys run on Friday at noon, after the review", "Deploys run on Friday at noon, after the review (again)"),
        ("يجب الانتظار ثلاثين دقيقة قبل النشر", "يَجِبُ الِانْتِظَارُ ثَلَاثِينَ دَقِيقَةً قَبْلَ النَّشْرِ"),
        ("يجب الانتظار قبل النشر دائما", "يجـــب الانتظار قبل النشـــر دائما"),
        ("שלום לכולם מחר בבוקר נפרסם", "שלום לכולם מחר בבוקר נפרסם".replace("ו", "ו\u05b9").replace("ל", "ל\u05b8")),
        ("Η ανάπτυξη χρειάζεται έγκριση από δύο", "Η αναπτυξη χρειαζεται εγκριση απο δυο"),
        ("Ещё раз проверить лимиты перед деплоем", "Еще раз проверить лимиты перед деплоем"),
        ("انتظر 30 دقيقة قبل النشر", "انتظر ٣٠ دقيقة قبل النشر"),
        ("Don't restart the queue worker on Friday", "Don’t restart the queue worker on Friday"),
        ("It wasn't Kim who was on call", "It wasnʼt Kim who was on call"),
        ("우리는 점심을 안 먹는다고 했다", "우리는 점심을 안먹는다고 했다"),
        ("the offset of the sensor is -5 degrees", "the offset of the sensor is −5 degrees"),
        ("the office is open 10-12 on weekdays", "the office is open 10–12 on weekdays"),
    ],
)
def test_a_small_addition_is_the_same(a: str, b: str) -> None:
    """Articles, a word more, accents, vowel signs, the form of digits, apostrophes and dashes change nothing."""
    assert same(a, b)


@given(st.sampled_from(SENTENCES), st.integers(0, 10**6), st.integers(0, 10**6))
def test_numbers_decide_exactly(text: str, a: int, b: int) -> None:
    """The same sentence with two numbers is the same fact only if they are equal, also in full width."""
    assert same(f"{text} {a}", f"{text} {b}") == (a == b)
    wide = "".join(chr(ord(c) + 0xFEE0) for c in str(a))
    assert same(f"{text} {a}", f"{text} {wide}")


@given(st.text(max_size=50))
def test_a_text_is_the_same_as_itself(text: str) -> None:
    """Also an empty one, one of punctuation, one of a single character."""
    assert same(text, text)


@pytest.mark.parametrize(("a", "b"), [("ok", "no"), ("🙂", "🎉"), ("猫", "犬"), ("", "a"), ("!", "?"), ("ab", "abc")])
def test_short_texts_compare_whole(a: str, b: str) -> None:
    """A text shorter than a trigram is the same only as itself."""
    assert not same(a, b)


TEXTS = st.text(alphabet="ab ", max_size=40)


@given(TEXTS, TEXTS)
def test_alike_is_the_similarity_of_trigrams(a: str, b: str) -> None:
    """The answer is the Jaccard similarity's, computed plainly."""

    def trigrams(text: str) -> set[str]:
        normal = "".join(text.split())
        return {normal[at : at + 3] for at in range(len(normal) - 2)}

    one, other = trigrams(a), trigrams(b)
    if not one or not other:
        expected = "".join(a.split()) == "".join(b.split())
    else:
        expected = len(one & other) >= THRESHOLD * len(one | other)
    assert is_alike(Fingerprint.of(a), Fingerprint.of(b)) == expected


class Prints:
    """A list of texts, as Seen wants it."""

    def __init__(self, texts: list[str]) -> None:
        self._prints = [Fingerprint.of(text) for text in texts]
        self._outlines = outlines_of(texts, PLAIN)

    def outlines(self, numbers: Sequence[int]) -> Outlines:
        return self._outlines[numbers]

    def fingerprint(self, number: int) -> Fingerprint:
        return self._prints[number]


@given(st.lists(TEXTS | st.sampled_from(SENTENCES), max_size=60), st.data())
def test_the_twin_is_the_first_that_says_the_same(texts: list[str], data: st.DataObject) -> None:
    """Rejecting most pairs by their bitmaps, many at a time, never loses a near-duplicate, in whatever order texts are
    asked for and admitted."""
    seen = Seen(Prints(texts))
    admitted: list[int] = []
    for turn in range(data.draw(st.integers(0, 3))):
        order = data.draw(st.permutations(range(len(texts))))
        if turn != 1:
            seen.upcoming(list(order))
        for number in order[: data.draw(st.integers(0, 30))]:
            expected = next(
                (other for other in admitted if other != number and same(texts[other], texts[number])), None
            )
            assert seen.twin(number) == expected
            if data.draw(st.booleans()):
                assert seen.admits(number) == (expected is None)
                if expected is None and number not in admitted:
                    admitted.append(number)


@given(st.lists(TEXTS | st.sampled_from((*SENTENCES, "", "é", "a" * 60_000)), min_size=1, max_size=20))
def test_outlines_made_together_are_those_of_each_text(texts: list[str]) -> None:
    """No trigram reaches from one text into the next, and each is counted once."""
    together = outlines_of(texts, PLAIN)
    for text, outline in zip(texts, together, strict=True):
        assert (outlines_of([text], PLAIN)[0] == outline).all()
        assert outline[:1].view(np.float64)[0] == len(Fingerprint.of(text).trigrams)


def test_outlines_tell_nothing_without_the_secret() -> None:
    """The same text has other bits in another store."""
    one, other = (outlines_of(SENTENCES, Hasher(secret)) for secret in (b"one", b"other"))
    assert (one[:, 0] == other[:, 0]).all()
    assert (one[:, 1:] != other[:, 1:]).any(axis=1).all()


def test_fingerprints_are_made_once_and_forgotten_in_turn() -> None:
    """The cache returns what it made, holds no more than its capacity, and drops the oldest."""
    cache = Fingerprints(capacity=2)
    first = cache.of("first text")
    second = cache.of("second text")
    assert cache.of("first text") is first
    cache.of("third text")
    assert len(cache) == 2
    assert cache.of("second text") is second
    assert cache.of("first text") is not first
    assert THRESHOLD == 0.7


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["a" * 65_000, "1-" * 30_000, "é" * 60_000, "-" * 65_000, "ไ" * 20_000])
def test_hostile_texts_take_linear_time(text: str) -> None:
    """The longest content that is taken does not hold a packet up."""
    assert same(text, text)
