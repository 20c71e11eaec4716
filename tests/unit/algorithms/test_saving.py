"""Saving: a learner comes back as it was, or not at all; what does not belong is refused in plain words."""

from __future__ import annotations

import copy
import json
import os
import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import tacit
from tacit.algorithms import saving
from tacit.errors import CorruptFileError, SaveError
from tacit.storage import read_folder, write_folder
from tests import worlds

QUICK = replace(worlds.INVERSE, steps=150)
EARLY = tacit.Decoder(0.6, 0.3)  # reads rewards from posteriors that were hardly learned
LEARNERS = {
    "finite, on-policy": (worlds.finite, worlds.on_policy, worlds.classes()),
    "finite, off-policy": (worlds.finite, worlds.off_policy, worlds.classes()),
    "networks, on-policy": (worlds.signs, worlds.on_policy, worlds.networks(QUICK)),
    "networks, off-policy": (worlds.signs, worlds.off_policy, worlds.networks(QUICK)),
    "finite, two-view": (worlds.finite, worlds.two_view, worlds.classes()),
    "networks, two-view": (worlds.signs, worlds.two_view, worlds.networks(QUICK)),
    "cocob and log loss, on-policy": (
        worlds.signs, worlds.on_policy,
        worlds.networks(
            replace(QUICK, optimiser="cocob", loss="log"), replace(worlds.ORACLE, optimiser="cocob", loss="log")
        ),
    ),
    "cocob, off-policy": (
        worlds.signs, worlds.off_policy,
        worlds.networks(replace(QUICK, optimiser="cocob"), replace(worlds.ORACLE, optimiser="cocob")),
    ),
    "without replay, on-policy": (
        worlds.signs, worlds.on_policy, worlds.networks(QUICK, replace(worlds.ORACLE, replay=0, warm_up=0)),
    ),
}  # fmt: skip
EXPLORE = {worlds.on_policy: 800, worlds.off_policy: 400, worlds.two_view: 800}


def made(name: str) -> tuple[tacit.environments.Environment, tacit.Learner]:
    world, kind, models = LEARNERS[name]
    return world(), kind(world(), models, EXPLORE[kind], decoder=EARLY)


def numbers(learner: tacit.Learner) -> dict[str, Tensor]:
    return {f"{part}/{name}": value for part, entries in learner.parts().items() for name, value in entries.items()}


def assert_same(one: tacit.Learner, other: tacit.Learner) -> None:
    mine, its = numbers(one), numbers(other)
    assert mine.keys() == its.keys()
    assert [name for name in mine if not torch.equal(mine[name], its[name])] == []
    assert one.fit_quality == other.fit_quality
    assert one.ledger.issued == other.ledger.issued


@pytest.mark.parametrize("stopped", [0, 300, 800, 900])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_loaded_learner_goes_on_to_the_same_numbers(tmp_path, name, stopped):
    """Stopped before it began, while exploring, with the last exploration round, and later."""
    environment, learner = made(name)
    arrivals = list(environment.stream(1_000, 50))
    resumed = None
    for played, arrival in enumerate(arrivals):
        if played * 50 == stopped:
            learner.save(tmp_path)
            resumed = tacit.load(tmp_path, device="cpu")
            assert_same(resumed, learner)
        for each in filter(None, (learner, resumed)):
            decision = each.choose(arrival.contexts)
            each.learn(decision, feedback_to(arrival, decision.actions, played))
    assert not learner.exploring
    assert_same(resumed, learner)
    assert torch.equal(resumed.greedy(arrivals[0].contexts), learner.greedy(arrivals[0].contexts))


def feedback_to(arrival, actions: Tensor, played: int) -> Tensor:
    """Feedback by a rule, as an environment would give another the second time it is asked."""
    if arrival.contexts.is_floating_point():
        return (arrival.contexts.argmax(1) + 2 * (arrival.contexts.argmax(1) == actions)) % 4
    right = torch.tensor(worlds.BEST)[arrival.contexts] == actions
    return torch.where(right, torch.tensor([1, 0, 2])[arrival.contexts], torch.tensor([0, 2, 1])[arrival.contexts])


@pytest.mark.parametrize("name", ["finite, on-policy", "networks, off-policy"])
def test_decisions_wait_for_their_feedback_across_a_restart(tmp_path, name):
    environment, learner = made(name)
    arrival = next(environment.stream(810, 810))
    decision = learner.choose(arrival.contexts)
    feedback = feedback_to(arrival, decision.actions, 0)
    learner.learn(decision[:100], feedback[:100])
    learner.save(tmp_path)
    resumed = tacit.load(tmp_path, device="cpu")
    assert resumed.learn(decision[50:100], feedback[50:100]).isnan().all()
    for each in (learner, resumed):
        each.learn(decision[:800], feedback[:800])
        assert not each.exploring
    assert_same(resumed, learner)
    with pytest.raises(tacit.UnknownDecisionError, match="before it was saved"):
        resumed.learn(learner.choose(arrival.contexts), feedback)


def test_what_was_told_to_the_constructor_comes_back(tmp_path):
    learner = tacit.OnPolicy(
        5, tacit.Image(8, 6, channels=3), tacit.Table(7), explore=123, decoder=tacit.Decoder(0.8, 0.2),
        schedule=tacit.Constant(3.5), models=tacit.Networks.paper(on="cpu"), seed=99,
    )  # fmt: skip
    learner.save(tmp_path)
    again = tacit.load(tmp_path, device="cpu")
    for name in ("problem", "decoder", "models", "seed", "explore", "schedule", "fit_quality"):
        assert getattr(again, name) == getattr(learner, name), name
    assert type(again) is tacit.OnPolicy


def test_a_fit_that_came_out_as_no_number_comes_back(tmp_path):
    learner = worlds.on_policy(worlds.finite(), worlds.classes())
    learner.fit_quality = tacit.Fit(float("inf"), 0.75, float("inf"), 1, held_out=True)
    learner.save(tmp_path)
    assert tacit.load(tmp_path).fit_quality == learner.fit_quality


def test_saving_changes_nothing(tmp_path):
    _, learner = made("networks, on-policy")
    before = {name: value.clone() for name, value in numbers(learner).items()}
    learner.save(tmp_path)
    assert all(torch.equal(value, before[name]) for name, value in numbers(learner).items())


def test_a_second_save_replaces_the_first(tmp_path):
    environment, learner = made("finite, on-policy")
    learner.save(tmp_path)
    worlds.play(learner, environment, 900)
    learner.save(tmp_path)
    assert_same(tacit.load(tmp_path), learner)
    assert len(list(tmp_path.iterdir())) == 2


def test_on_another_kind_of_device_it_goes_on_with_other_draws_that_are_the_same_every_time(tmp_path):
    """The state of a GPU's generator has 16 bytes, which a CPU's cannot take."""
    _, learner = made("networks, on-policy")
    learner.save(tmp_path)
    document, tensors = read_folder(tmp_path)
    tensors |= {f"generators/{name}": torch.arange(16, dtype=torch.uint8) for name in ("draws", "training")}
    write_folder(tmp_path, document, tensors)
    first, second = (tacit.load(tmp_path, device="cpu").choose(torch.zeros(100, 4)).actions for _ in range(2))
    assert torch.equal(first, second)
    assert first.unique().numel() == 4


class FullDisk:
    """Lets so many files through, and then says that the disk is full."""

    def __init__(self, files: int) -> None:
        self.files, self.fsync = files, os.fsync

    def __call__(self, handle: int) -> None:
        self.files -= 1
        if self.files < 0:
            raise OSError(28, "No space left on device")
        self.fsync(handle)


@pytest.mark.parametrize("files", [0, 1])
def test_a_save_that_fails_leaves_the_old_one(tmp_path, monkeypatch, files):
    environment, learner = made("finite, on-policy")
    learner.save(tmp_path)
    saved = tacit.load(tmp_path)
    worlds.play(learner, environment, 900)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", FullDisk(files))
        with pytest.raises(SaveError, match="No space left on device"):
            learner.save(tmp_path)
    assert_same(tacit.load(tmp_path), saved)
    learner.save(tmp_path)
    assert_same(tacit.load(tmp_path), learner)


def test_a_folder_that_cannot_be_made_is_a_save_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SaveError):
        made("finite, on-policy")[1].save(tmp_path / "file")


@dataclass(frozen=True)
class Own(tacit.Schedule):
    """Somebody's own schedule, of which tacit knows nothing when it loads."""

    def gamma(self, t: Tensor, K: int) -> Tensor:
        return t


class Plain(Own):
    pass


@pytest.mark.parametrize("schedule", [Own(), Plain(), type("Constant", (Own,), {})()])
def test_what_could_not_be_loaded_is_not_saved(tmp_path, schedule):
    learner = worlds.on_policy(worlds.finite(), worlds.classes(), schedule=schedule)
    with pytest.raises(SaveError, match="cannot be saved"):
        learner.save(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    """A learner in the middle of exploration, which has something to say in every part."""
    folder = tmp_path_factory.mktemp("saved")
    learner = worlds.on_policy(worlds.finite(), worlds.networks(), explore=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.DecoderWarning)
        worlds.play(learner, worlds.finite(), 40, batch=10)
    learner.save(folder)
    return folder


def altered(saved: Path, folder: Path, change) -> Path:
    """A copy of the saved folder with learner.json changed."""
    document, tensors = read_folder(saved)
    write_folder(folder, document, tensors)
    path = folder / "learner.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return folder


def test_a_folder_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(CorruptFileError, match="does not exist"):
        tacit.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["learner.json", "tensors"])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_named(saved, tmp_path, name, kept):
    folder = altered(saved, tmp_path, lambda document: None)
    (path,) = folder.glob(f"{name}*")
    path.write_bytes(path.read_bytes()[: int(kept * path.stat().st_size)])
    with pytest.raises(CorruptFileError, match=path.name):
        tacit.load(folder)


@pytest.mark.parametrize("number", [0, 2, "1", None])
def test_another_format_is_named(saved, tmp_path, number):
    folder = altered(saved, tmp_path, lambda document: document.update(format=number))
    with pytest.raises(CorruptFileError, match=f"format {number!r}; this version of tacit reads format 1"):
        tacit.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["settings"].update(patience=3),
        lambda document: document["settings"].pop("explore"),
        lambda document: document["settings"].update(explore=0),
        lambda document: document["problem"]["context"].update(kind="Sound"),
        lambda document: document["problem"]["context"].update(count=4),
        lambda document: document["problem"].update(actions=5),
        lambda document: document["models"]["oracle_training"].update(optimiser="lion"),
        lambda document: document["models"]["oracle_training"].update(momentum=0.9),
        lambda document: document.update(learner="InPolicy"),
        lambda document: document.update(models="FiniteClasses"),
        lambda document: document["decoder"].update(sigma=2.0),
        lambda document: document["decisions"].update(issued=1_000),
    ],
)
def test_settings_of_another_learner_are_refused(saved, tmp_path, change):
    with pytest.raises(CorruptFileError):
        tacit.load(altered(saved, tmp_path, change))


def places(document: Any, path: tuple[Any, ...] = ()):
    """Every place in a document."""
    yield path
    for name, value in document.items() if isinstance(document, dict) else ():
        yield from places(value, (*path, name))


def put(document: dict[str, Any], path: tuple[Any, ...], value: object) -> None:
    *way, last = path
    for name in way:
        document = document[name]
    document[last] = value


def test_whatever_is_put_into_learner_json_it_is_loaded_or_refused_but_never_breaks(saved, tmp_path):
    """And what is loaded can be asked for a decision."""
    document, tensors = read_folder(saved)
    write_folder(tmp_path, document, tensors)
    path = tmp_path / "learner.json"
    whole = json.loads(path.read_text())
    refused = 0
    for place in list(places(whole))[1:]:
        for value in (None, True, -1, 0.5, "", "x", [], {}, {"kind": "Constant", "value": 1.0}, {"kind": "Fit"}):
            changed = copy.deepcopy(whole)
            put(changed, place, value)
            path.write_text(json.dumps(changed))
            try:
                learner = tacit.load(tmp_path, device="cpu")
            except CorruptFileError:
                refused += 1
            else:
                assert learner.choose([0, 1]).probabilities.shape == (2, 4), (place, value)
    assert refused > 200


COMPLETE = (
    "finite, on-policy", "finite, off-policy", "networks, on-policy", "networks, off-policy",
    "cocob and log loss, on-policy",
)  # fmt: skip


@pytest.fixture(scope="module", params=COMPLETE)
def taught(request, tmp_path_factory) -> Path:
    environment, learner = made(request.param)
    worlds.play(learner, environment, 900)
    folder = tmp_path_factory.mktemp("taught")
    learner.save(folder)
    return folder


def test_a_missing_tensor_is_named_even_where_the_checksum_was_renewed(taught, tmp_path):
    document, tensors = read_folder(taught)
    for name in tensors:
        write_folder(tmp_path, document, {key: value for key, value in tensors.items() if key != name})
        with pytest.raises(CorruptFileError, match=f"the tensors lack {re.escape(name)};"):
            tacit.load(tmp_path, device="cpu")


def test_an_unknown_tensor_is_named_even_where_the_checksum_was_renewed(taught, tmp_path):
    document, tensors = read_folder(taught)
    for part in {name.partition("/")[0] for name in tensors} | {"more"}:
        write_folder(tmp_path, document, tensors | {f"{part}/strange": torch.zeros(3)})
        with pytest.raises(CorruptFileError, match=f"the tensors have unknown {part}/strange;"):
            tacit.load(tmp_path, device="cpu")


def test_a_missing_part_is_refused_even_where_nothing_says_that_it_belongs_there(taught, tmp_path):
    document, tensors = read_folder(taught)
    for part in {name.partition("/")[0] for name in tensors} - {"sample"}:  # no sample: there is nothing to judge yet
        kept = {key: value for key, value in tensors.items() if not key.startswith(f"{part}/")}
        write_folder(tmp_path, document | {"names": sorted(kept)}, kept)
        with pytest.raises(CorruptFileError):
            tacit.load(tmp_path, device="cpu")


def test_rounds_to_learn_from_again_are_refused_without_their_contexts(tmp_path):
    environment, learner = made("networks, on-policy")
    worlds.play(learner, environment, 900)
    learner.save(tmp_path)
    document, tensors = read_folder(tmp_path)
    columns = [f"oracle/replay.{name}" for name in ("contexts", "actions", "decoded")]
    for lacking in (columns[:1], columns):
        kept = {name: value for name, value in tensors.items() if name not in lacking}
        write_folder(tmp_path, document | {"names": sorted(kept)}, kept)
        with pytest.raises(CorruptFileError, match="contexts"):
            tacit.load(tmp_path, device="cpu")
    fewer = {name: value[:9] if name in columns else value for name, value in tensors.items()}
    write_folder(tmp_path, document, fewer)
    with pytest.raises(CorruptFileError, match="9 rounds to learn from again were saved, after 600 rounds"):
        tacit.load(tmp_path, device="cpu")


@pytest.mark.parametrize("names", [None, "all", {"a": 1}])
def test_a_document_that_does_not_say_which_tensors_belong_to_it_is_refused(saved, tmp_path, names):
    with pytest.raises(CorruptFileError, match="does not say which tensors belong to it"):
        tacit.load(altered(saved, tmp_path, lambda document: document.update(names=names)))


def test_every_kind_that_is_saved_has_a_name_of_its_own():
    assert len(saving.KINDS) == len(saving.SAVED)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("oracle/network.head.bias", torch.full((4,), torch.nan), "not finite"),
        ("oracle/optimiser.0.exp_avg", torch.zeros(7), "does not fit its network"),
        ("oracle/replay.seen", torch.zeros(7), "not a learner"),
        ("store/progress", torch.zeros(7), "not a learner"),
    ],
)
def test_tensors_that_cannot_be_a_learners_are_refused(tmp_path, name, value, said):
    environment, learner = made("networks, on-policy")
    worlds.play(learner, environment, 900)
    learner.save(tmp_path)
    document, tensors = read_folder(tmp_path)
    assert name in tensors
    write_folder(tmp_path, document, tensors | {name: value})
    with pytest.raises(CorruptFileError, match=said):
        tacit.load(tmp_path, device="cpu")
