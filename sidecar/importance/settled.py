"""How importance is scored as the settings say it: the weights, the domains of the settings file, the clamp. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from sidecar.config import Settings
from sidecar.importance.settings import AccessForm, ImportanceSettings, SignalWeights, with_domains
from sidecar.importance.wording import fingerprint
from sidecar.store.meta import IMPORTANCE_OFF

SCORER_VERSION = 5
"""Grows with any change of what a content scores: then the content parts that are stored are made anew."""


def settled_importance(settings: Settings) -> ImportanceSettings:
    """What the settings come to. Raises SettingsError."""
    found = ImportanceSettings(
        enabled=settings.importance_scorer_enabled == "true",
        weights=SignalWeights(
            content=settings.content_weight,
            user=settings.user_signal_weight,
            access=settings.access_pattern_weight,
            emotion=settings.emotional_weight,
            context=settings.contextual_weight,
        ),
        lowest=settings.min_importance,
        highest=settings.max_importance,
        access_form=AccessForm(settings.importance_access),
        domain=settings.importance_domain,
        emotion_namespaces=frozenset(settings.emotion_namespaces),
    )
    return with_domains(found, settings.importance_domains, settings.importance_namespaces)


def identity_of(settings: ImportanceSettings, embedder: str) -> str:
    """Changes with anything between two starts that can change the content part of an importance; `embedder` is the
    identity of what makes the vectors."""
    if not settings.enabled:
        return IMPORTANCE_OFF
    ordered = replace(settings, emotion_namespaces=frozenset(), domains={}, namespaces={})
    sets = (sorted(settings.emotion_namespaces), sorted(settings.domains.items()), sorted(settings.namespaces.items()))
    return hashlib.sha256(repr((SCORER_VERSION, fingerprint(), embedder, ordered, sets)).encode()).hexdigest()
