from __future__ import annotations

import numpy as np
import pytest

from sidecar.domain import Segment
from sidecar.ranking.reserved import ReserveSettings
from sidecar.store.log_reading import read_log
from sidecar.weights import PRESETS, make_weights
from tests.serving import running
from training.dataset import SEGMENTS, Cutoffs, Dataset, build_dataset
from training.model import Model
from training.off_policy import estimate
from training.reserved_draws import reserved_draws

FOREVER = 2**62
DEFAULT = Model(PRESETS["default"])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The log of a real server: 40 packets of 12 from 60 memories, with two reserved slots, all but every fifth
    reported on, so that both strata fill."""
    folder = tmp_path_factory.mktemp("s")
    with running(folder) as server:
        client = server.client
        client.upsert(
            "n",
            [{"id": f"m{n}", "content": f"harbour pilot {n} boards ship {n * n} at gate {n % 7}"} for n in range(60)],
        )
        for turn in range(40):
            packet = client.rank(
                "n", f"which pilot boards at gate {turn % 7}", max_items=12, session_id=f"s{turn // 2}"
            )
            if turn % 5:
                client.report_use(
                    packet.packet_id, [item.memory.id for item in packet.items if int(item.memory.id[1:]) % 3 == 0]
                )
    return build_dataset(read_log(folder / "data" / "memories.db"), Cutoffs(FOREVER, FOREVER))


def test_the_weights_that_served_have_the_logged_chances(dataset: Dataset) -> None:
    """Computed from the log alone, for every draw that was reported on: so pool, strata, rule and task fit are all
    logged as they were."""
    draws = reserved_draws(dataset, DEFAULT)
    assert draws is not None
    reported = dataset.packets.reported[dataset.packet]
    assert len(draws.reward) == int(((dataset.segment == SEGMENTS.index(Segment.RESERVED)) & reported).sum()) >= 40
    assert draws.target == pytest.approx(draws.propensity, abs=1e-12)
    assert np.unique(draws.pool_session).tolist() == np.unique(draws.session).tolist()
    assert draws.pool_target.sum() == pytest.approx(len(draws.reward), abs=1e-9)


def test_other_weights_have_other_chances_of_the_same_draws(dataset: Dataset) -> None:
    """Each still between 0 and 1 and of the same sum, and the estimates are finite."""
    other = make_weights("other", {"semantic": 0.5, "handles": 0.5})
    draws = reserved_draws(dataset, Model(other))
    assert draws is not None
    assert not np.allclose(draws.target, draws.propensity)
    assert ((draws.target > 0) & (draws.target <= 1)).all()
    assert draws.pool_target.sum() == pytest.approx(len(draws.reward), abs=1e-9)
    assert all(np.isfinite(each.value) for each in estimate(draws).estimates.values())


def test_only_the_packets_that_were_asked_for(dataset: Dataset) -> None:
    """A mask leaves the others out; one that marks none leaves nothing."""
    chosen = np.arange(len(dataset.packets)) < 20
    draws = reserved_draws(dataset, DEFAULT, chosen)
    assert draws is not None
    assert set(draws.session.tolist()) <= set(dataset.packets.session[:20].tolist())
    assert reserved_draws(dataset, DEFAULT, np.zeros(len(dataset.packets), bool)) is None


def test_a_policy_names_its_constants() -> None:
    """They come back from its name, and another rule's name is refused."""
    settings = ReserveSettings(3, 12, 0.1, 0.5, 0.25, 0.2)
    assert ReserveSettings.of_policy(settings.policy) == settings
    with pytest.raises(ValueError, match="not of the rule"):
        ReserveSettings.of_policy("reserve-0 floor=1")
