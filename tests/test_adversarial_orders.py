"""Orders of the adversarial generators in generators.csv, each oracle by itself."""

import numpy as np
import pytest
from data.tables import read

ROWS = read("generators.csv")
ORACLES = sorted({row["oracle"] for row in ROWS}, key=int)


def rows_of(oracle, texts, pretrained="yes"):
    """The rows of an oracle's models by their names; MLE is always there."""
    return {
        row["model"]: row
        for row in ROWS
        if (row["oracle"], row["texts"]) == (oracle, texts)
        and float(row["temperature"]) == 1
        and row["pretrained"] in (pretrained, "")
    }


def sorted_by(metric, oracle, texts, names):
    rows = rows_of(oracle, texts)
    return sorted(names, key=lambda name: float(rows[name][metric]))


@pytest.mark.claim("N22.13")
def test_orders_of_table_4():
    mali, seq, rank = "MaliGAN, batches of 3", "SeqGAN-reinforce", "RankGAN, bounded"
    names = mali, rank, seq, "MLE"
    by_distance, by_quality = ["MLE", mali, seq, rank], [seq, rank, "MLE", mali]
    for texts in ("", "128"):
        at = [sorted_by("bhattacharyya", o, texts, names) for o in ORACLES]
        assert at.count(by_distance) <= (0.5, 0.1)[texts == "128"] * len(at)
        at = [sorted_by("oracle_nll", o, texts, names) for o in ORACLES]
        assert at.count(by_quality) <= 0.1 * len(at)
        assert sum(order.index("MLE") == 3 for order in at) >= 0.55 * len(at)
    # The population's MaliGAN is maximum likelihood.
    for oracle in ORACLES:
        rows = rows_of(oracle, "128")
        for metric in ("nll", "oracle_nll", "entropy"):
            found = float(rows["MaliGAN"][metric])
            assert found == pytest.approx(float(rows["MLE"][metric]), rel=0.02)


@pytest.mark.claim("N22.14")
def test_observations_of_semeniuta():
    signs, starts, continuous = [], [], []
    for oracle in ORACLES:
        rows, sharp = rows_of(oracle, "128"), rows_of(oracle, "")
        gan, model = rows["SeqGAN-reinforce"], rows["MLE"]
        metrics = "oracle_nll", "nll", "bleu", "js"
        signs.append([float(gan[m]) > float(model[m]) for m in metrics])
        fresh = rows_of(oracle, "", "no")
        gans = "SeqGAN-reinforce", "SeqGAN-step", "SeqGAN-rollouts"
        starts += [float(sharp[g]["js"]) - float(fresh[g]["js"]) for g in gans]
        atoms = min(float(fresh[f"Conv-{x}"]["js"]) for x in ("LSTM", "Deconv"))
        continuous.append(atoms - max(float(sharp[g]["js"]) for g in gans))
    share = np.mean(signs, axis=0)
    assert share[0] <= 0.4
    assert share[1:3].min() >= 0.6
    assert share[3] >= 0.5
    assert abs(np.median(starts)) <= 1e-3
    assert np.median(continuous) > 0.01


@pytest.mark.claim("N22.15")
def test_distances_to_the_frontier():
    """No model of its entropy is nearer than P, so it lacks KL(Q, P) at most."""
    for row in ROWS:
        lacking = float(row["LL_SE"])
        kl = float(row["oracle_nll"]) - float(row["entropy"])
        assert -2e-4 <= lacking <= kl + 2e-4
    lost = []
    for oracle in ORACLES:
        rows = rows_of(oracle, "128")
        worst = max(float(rows[f"LeakGAN-{x}"]["LL_SE"]) for x in ("leak", "mixed"))
        lost.append(worst - float(rows["MLE"]["LL_SE"]))
    assert np.median(lost) > 0.2
