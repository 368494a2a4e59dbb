"""Counts use over distinct sessions: what the use rate, frequency and recency are made of. Pure.

A session gives a memory one pair (used, seen): over its packets the largest of each. So fifty uses in one session
weigh no more than one. Sums are kept by agent, and an agent weighs at most AGENT_SESSIONS sessions of a memory: above
it used and seen are scaled alike, which keeps the rate and bounds its weight. The bound is on the sum of seen, not on
the number of sessions: otherwise a doubtful "not used" would thin out the certain ones before it and raise the rate.
"""

from __future__ import annotations

from collections.abc import Collection
from math import fsum
from typing import NamedTuple

from sidecar.domain import Micros, UseCounts
from sidecar.store.merge import MILLION

AGENT_SESSIONS = 20
"""Most sessions of one memory that one agent weighs, unless the store's settings say otherwise."""


class SessionUse(NamedTuple):
    """What one session says of one memory. `used` and `seen` are in millionths; `last_use_time` None means not used."""

    used: int = 0
    seen: int = 0
    last_use_time: Micros | None = None

    def with_packet(self, used: int, seen: int, last_use_time: Micros | None) -> SessionUse:
        """The same with one more packet of the session."""
        return SessionUse(max(self.used, used), max(self.seen, seen), later(self.last_use_time, last_use_time))

    def as_agent(self) -> AgentUse:
        """What it adds to its agent's sums."""
        return AgentUse(
            self.used, self.seen, int(self.last_use_time is not None), int(self.seen > 0), self.last_use_time
        )


class AgentUse(NamedTuple):
    """Sums of one memory over one agent's sessions, and its last use. `used` and `seen` are in millionths."""

    used: int = 0
    seen: int = 0
    use_sessions: int = 0
    reported_sessions: int = 0
    last_use_time: Micros | None = None

    def plus(self, other: AgentUse) -> AgentUse:
        """The sums with another's added."""
        return AgentUse(
            self.used + other.used,
            self.seen + other.seen,
            self.use_sessions + other.use_sessions,
            self.reported_sessions + other.reported_sessions,
            later(self.last_use_time, other.last_use_time),
        )

    def moved(self, was: SessionUse, now: SessionUse, rest: Micros | None) -> AgentUse:
        """The sums once a session of theirs says `now` instead of `was`; `rest` is the last use of the others."""
        return AgentUse(
            self.used + now.used - was.used,
            self.seen + now.seen - was.seen,
            self.use_sessions + (now.last_use_time is not None) - (was.last_use_time is not None),
            self.reported_sessions + (now.seen > 0) - (was.seen > 0),
            rest if now.last_use_time is None else later(rest, now.last_use_time),
        )


def total(agents: Collection[AgentUse], agent_sessions: int = AGENT_SESSIONS) -> UseCounts:
    """The counts of one memory over all agents; 0 <= used <= seen. In whatever order the agents come."""
    most = agent_sessions * MILLION
    if len(agents) == 1:  # as nearly everywhere
        (one,) = agents
        if one.seen <= most:
            return UseCounts(one.used / MILLION, one.seen / MILLION, *one[2:])
    used: list[float] = []
    seen: list[float] = []
    use_sessions = reported_sessions = 0
    last_use_time: Micros | None = None
    for agent in agents:
        used.append(agent.used if agent.seen <= most else agent.used * most / agent.seen)
        seen.append(min(agent.seen, most))
        use_sessions += agent.use_sessions
        reported_sessions += agent.reported_sessions
        last_use_time = later(last_use_time, agent.last_use_time)
    return UseCounts(fsum(used) / MILLION, fsum(seen) / MILLION, use_sessions, reported_sessions, last_use_time)


def later(one: Micros | None, other: Micros | None) -> Micros | None:
    """The later of two times, where None is before all."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
