"""The content signal: what lasts is worth more than what passes, in each language whose marks are known; and each of
the six parts goes by what it says it goes by."""

from __future__ import annotations

import pytest

from sidecar.domain import Memory
from sidecar.importance.content import PARTS, Analysis, analyse
from sidecar.importance.language import language_of
from sidecar.importance.scoring import Signal

TEXTS = {
    "en": (
        "Invoices above 500 euros need a second approval.",
        "Invoice page is loading slowly at the moment, waiting.",
        "They told a funny story about the invoices over coffee and laughed.",
        "Invoices are sometimes a bit of a thing for somebody, it seems.",
        "INVOICES!!! Really really important, everybody!!!",
        "Yesterday we went through the invoices, saw 3 blue ones, ate a sandwich and walked home.",
        "Invoices matter, and good invoices are the foundation of success.",
    ),
    "de": (
        "Rechnungen über 500 Euro nur mit zweiter Freigabe.",
        "Die Rechnungsseite lädt gerade noch, ich warte.",
        "Hat beim Kaffee eine lustige Geschichte über Rechnungen erzählt und gelacht.",
        "Mit den Rechnungen ist manchmal irgendetwas, ein bisschen schwierig wohl.",
        "Rechnungen!!! Sehr sehr wichtig, wirklich unbedingt!!!",
        "Früher gingen die Rechnungen an Herrn Maier, wir saßen im Keller und tranken etwas.",
        "Gute Rechnungen sind die Grundlage für den Erfolg, und am Ende zählt der Mensch.",
    ),
    "fr": (
        "Les factures au-dessus de 500 euros exigent toujours une seconde signature.",
        "La page des factures est en train de charger en ce moment, on attend.",
        "Il a raconté une histoire drôle sur les factures, le café était agréable.",
        "Les factures, c'est parfois un peu compliqué pour quelqu'un, apparemment.",
        "Les factures !!! C'est très très important, vraiment !!!",
        "Autrefois on a regardé les factures avec Paul, puis nous avons mangé à 12 h.",
        "Les factures sont la clé du succès, et chacun y contribue, tous ensemble.",
    ),
    "es": (
        "Las facturas de más de 500 euros solo se pagan con dos firmas.",
        "Ahora mismo la página de facturas está cargando, sigo esperando.",
        "Contó una anécdota divertida sobre las facturas y se rió con el café.",
        "Las facturas a veces son un poco complicadas para alguien, al parecer.",
        "¡¡¡Las facturas!!! ¡¡¡Muy muy importante, de verdad!!!",
        "Antiguamente miraron las facturas con Pablo, comieron y salieron a las 12.",
        "Las facturas son la base del éxito, y juntos llegamos más lejos.",
    ),
    "ru": (
        "Счета больше 500 евро нельзя оплачивать без второй подписи.",
        "Страница счетов сейчас загружается, пока жду.",
        "Рассказал забавную историю про счета за кофе и смеялся.",
        "Со счетами иногда что-то вроде немного сложно кому-то.",
        "Счета!!! Очень очень важно, крайне важно!!!",
        "Раньше мы смотрели счета с Павлом, ходили в подвал и пили сок.",
        "Хорошие счета — основа успеха, и каждый вносит вклад вместе со всеми.",
    ),
    "ar": (
        "الفواتير فوق 500 يورو لا تدفع إلا بتوقيعين.",
        "صفحة الفواتير قيد التحميل الآن، ما زال الأمر مؤقتا.",
        "حكى قصة عن الفواتير وضحك، وكانت القهوة لذيذة.",
        "الفواتير أحيانا فيها شيء ما صعب قليلا على ما يبدو.",
        "الفواتير!!! مهم جدا جدا للغاية!!!",
        "سابقا نظرنا في الفواتير مع سامي وجلس هناك وأكل وشرب.",
        "الفواتير أساس النجاح والجميع يساهم معا.",
    ),
    "ko": (
        "500유로 이상 청구서는 반드시 두 명이 승인해야 한다.",
        "지금 청구서 화면이 열리는 중이라 잠깐 기다리고 있다.",
        "커피를 마시며 청구서 이야기를 했고 재미있다고 웃었다.",
        "청구서는 가끔 좀 어려운 것 같다.",
        "청구서!!! 정말 정말 중요!!! 진짜!!!",
        "예전에 민수와 청구서를 봤고 밥을 먹고 집에 갔다.",
        "청구서는 성공의 기본이며 모두가 함께 노력한다.",
    ),
    "ja": (
        "500ユーロ以上の請求書は二名の承認が必須。",
        "今は請求書の画面が読み込み中です。ちょっと待っている。",
        "コーヒーを飲みながら請求書の話をして笑って楽しかった。",
        "請求書は時々なんとなく少し難しいようだ。",
        "請求書！！！本当に本当に重要！！！",
        "以前は田中さんと請求書を見た。そのあとパンを食べた。",
        "請求書は成功の基本であり、みんなで努力する。",
    ),
    "zh": (
        "500欧元以上的发票必须两人批准。",
        "发票页面现在正在加载，还在等待。",
        "喝咖啡时讲了个发票的故事，大家笑得很开心。",
        "发票有时候好像有点麻烦什么的。",
        "发票！！！真的真的非常重要！！！",
        "以前和小王看了发票，吃了面，坐了一会儿就走了。",
        "发票是成功的基础，大家都要努力。",
    ),
    "th": (
        "ใบแจ้งหนี้เกิน 500 ยูโรต้องมีผู้อนุมัติสองคนเท่านั้น",
        "ตอนนี้หน้าใบแจ้งหนี้กำลังโหลด รอสักพัก",
        "เล่าเรื่องตลกเรื่องใบแจ้งหนี้ตอนดื่มกาแฟแล้วหัวเราะสนุก",
        "ใบแจ้งหนี้บางครั้งก็ยากนิดหน่อย ดูเหมือนจะเป็นอย่างนั้น",
        "ใบแจ้งหนี้!!! สำคัญมาก ๆ จริง ๆ ที่สุด!!!",
        "เมื่อก่อนไปดูใบแจ้งหนี้กับสมชาย นั่งคุย แล้วก็กลับบ้าน",
        "ใบแจ้งหนี้คือพื้นฐานของความสำเร็จ ทุกคนมีส่วนร่วม",
    ),
}
"""By language: a rule, and the same matter as it passes, is chatted about, vague, shouted, over, and a truism."""


def worth(text: str, kind: str = "fact") -> float:
    """The content signal of a text by itself."""
    found = analyse(Memory(id="", content=text, kind=kind))
    value = Signal.of_parts({name: (getattr(found, name, None), share) for name, share in PARTS.items()}).value
    assert value is not None
    return value


def analysed(text: str) -> Analysis:
    return analyse(Memory(id="", content=text))


@pytest.mark.parametrize("language", TEXTS)
def test_a_rule_is_worth_more_than_what_will_not_matter(
    language: str,
) -> None:
    """In every language with marks of its own; none of the texts comes from the labelled pairs."""
    rule, *others = TEXTS[language]
    assert language_of(rule) == language
    for other in others:
        assert worth(rule) > worth(other), other


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Gegenüber Gästen immer höflich", "de"),
        ("Añadir siempre la firma", "es"),
        ("Toujours répondre à l'hôtel", "fr"),
        ("Meet Anna at the Zürich office", "en"),
    ],
)
def test_a_short_sentence_is_known_by_its_letters(text: str, language: str) -> None:
    """Function words are few in it."""
    assert language_of(text) == language


def test_density_is_of_telling_words() -> None:
    """Filler lowers it, and so does a text of one word."""
    assert analysed("Staging database lives in Frankfurt").semantic_density > 0.9
    assert analysed("It is what it is and that is that for me").semantic_density < 0.6
    assert analysed("Frankfurt").semantic_density < 0.5


def test_entities_are_names_and_terms() -> None:
    """A German noun is no name for its capital, and a shouted word is none either."""
    assert analysed("Anna Keller moved the pgvector ticket to PostgreSQL").entities > 0.7
    assert analysed("Das Haus hat einen Keller und einen Garten mit Baum").entities < 0.2
    assert analysed("WE MUST DO THIS NOW!!!").entities == 0.0


def test_instructions_and_decisions_are_actionable() -> None:
    """A plain state is not; nor is a question."""
    assert analysed("Restart the worker, then run the smoke test").actionability > 0.6
    assert analysed("We decided to use SQLite").actionability > 0.3
    assert analysed("The sky over the harbour").actionability == 0.0
    assert analysed("Should we restart the worker?").actionability < 0.4


def test_figures_and_stakes_are_facts() -> None:
    """Numbers, versions, dates, limits, and what it costs to forget."""
    assert analysed("PostgreSQL 16.4 listens on port 5433 since 2024-05-01").factual_content > 0.8
    assert analysed("Allergic to penicillin").factual_content > analysed("Fond of peninsulas").factual_content
    assert analysed("The sky over the harbour").factual_content == 0.0


def test_names_and_figures_of_a_story_a_log_or_readings_count_little() -> None:
    """They fill what passes as they fill what lasts."""
    story = "Went to see Anna, Bert and Clara at 14:20, took bus 12 and 18, saw 3 dogs and drank 2 teas."
    log = "2031-01-02T03:04:05Z INFO worker-3 pid=77 GET /ready 200 4ms"
    readings = "Ready 14:05, build 3.9.2, memory 380 MB, 21 threads"
    rule = "Only Anna signs for Bert."
    assert worth(rule) > max(worth(story), worth(log), worth(readings))


def test_links_are_cross_references() -> None:
    """Tickets, paths and words that link; and a handle that another memory bears."""
    assert analysed("See OPS-112 and docs/runbook.md because of the outage").cross_references > 0.7
    plain = Memory(id="", content="Ticket OPS-112 is closed")
    assert analyse(plain, lambda _: True).cross_references > analyse(plain).cross_references
