"""What networks are trained with: optimisers and their state, their rates, and the order of batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import parameterfree
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from tacit.errors import CorruptFileError, InvalidInputError
from tacit.inverse import InverseTraining
from tacit.oracles import OracleTraining
from tacit.seeding import generator, initialisation
from tacit.training import (
    WARM_UP,
    Replayed,
    eased_in,
    one_cycle,
    optimiser,
    optimiser_tensors,
    restore_optimiser,
    shuffled,
    subset,
    uniforms,
)  # fmt: skip

OPTIMISERS = ("adamw", "cocob")


def network(seed: int = 0) -> nn.Linear:
    with initialisation(generator(seed, "network")):
        return nn.Linear(3, 2)


def learn(net: nn.Linear, optim: Optimizer, steps: int, source: torch.Generator) -> None:
    for _ in range(steps):
        optim.zero_grad()
        inputs = torch.rand(8, 3, generator=source)
        functional.mse_loss(net(inputs), inputs[:, :2]).backward()
        optim.step()


def weights(net: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()


def test_each_name_gives_its_optimiser():
    assert isinstance(optimiser("adamw", network(), 0.1), torch.optim.AdamW)
    assert isinstance(optimiser("cocob", network(), 0.1), parameterfree.COCOB)


@pytest.mark.parametrize("settings", [InverseTraining, OracleTraining])
@pytest.mark.parametrize("setting", [{"optimiser": "sgd"}, {"loss": "hinge"}, {"optimiser": None}, {"loss": "adamw"}])
def test_an_unknown_optimiser_or_loss_is_refused(settings, setting):
    (wrong,) = setting.values()
    with pytest.raises(InvalidInputError, match=f"{settings.__name__}: expected one of .*, got {wrong!r}"):
        settings(**setting)


@pytest.mark.parametrize("settings", [InverseTraining, OracleTraining])
@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_known_optimiser_and_loss_is_accepted(settings, name, loss):
    made = settings(optimiser=name, loss=loss)
    assert (made.optimiser, made.loss) == (name, loss)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_goes_on_with_the_same_numbers_after_a_save(name, source):
    net = network()
    optim = optimiser(name, net, 0.01)
    learn(net, optim, 7, source)
    again = network(seed=1)
    again.load_state_dict(net.state_dict())
    resumed = optimiser(name, again, 0.01)
    restore_optimiser(resumed, optimiser_tensors(optim))
    for each, its in ((net, optim), (again, resumed)):
        learn(each, its, 7, generator(1, "later"))
    assert torch.equal(weights(net), weights(again))


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_restored_optimiser_matters(name, source):
    net = network()
    optim = optimiser(name, net, 0.01)
    learn(net, optim, 7, source)
    again = network(seed=1)
    again.load_state_dict(net.state_dict())
    for each, its in ((net, optim), (again, optimiser(name, again, 0.01))):
        learn(each, its, 7, generator(1, "later"))
    assert not torch.equal(weights(net), weights(again))


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_restored_optimiser_shares_nothing_with_the_saved_one(name, source):
    net, again = network(), network()
    optim, resumed = optimiser(name, net, 0.01), optimiser(name, again, 0.01)
    learn(net, optim, 3, source)
    kept = {key: value.clone() for key, value in optimiser_tensors(optim).items()}
    restore_optimiser(resumed, optimiser_tensors(optim))
    learn(again, resumed, 3, source)
    assert all(torch.equal(value, kept[key]) for key, value in optimiser_tensors(optim).items())


def test_an_optimiser_that_never_stepped_can_be_saved(source):
    net = network()
    optim = optimiser("adamw", net, 0.01)
    assert optimiser_tensors(optim) == {}
    restore_optimiser(optim, {})
    learn(net, optim, 1, source)


@pytest.mark.parametrize("key", ["2.step", "-1.step", "step", "x.step", "²"])
def test_state_of_parameters_that_are_not_there_is_refused(key):
    with pytest.raises(CorruptFileError, match="the saved optimiser does not fit its network"):
        restore_optimiser(optimiser("adamw", network(), 0.01), {key: torch.tensor(1.0)})


def test_the_rate_rises_to_its_peak_and_falls_to_nothing(source):
    steps, peak = 90, 0.01
    net = network()
    optim = optimiser("adamw", net, peak)
    advance = one_cycle(optim, peak, steps)
    rates = []
    for _ in range(steps):
        rates.append(float(optim.param_groups[0]["lr"]))
        learn(net, optim, 1, source)
        advance()
    top = rates.index(max(rates))
    assert rates[top] == pytest.approx(peak, rel=0.01)
    assert steps / 5 < top < steps / 2
    assert rates[0] < peak / 10
    assert rates[-1] < peak / 100
    assert rates == sorted(rates[:top]) + sorted(rates[top:], reverse=True)


def test_cocob_has_no_rate_to_change():
    optim = optimiser("cocob", network(), 0.1)
    before = str(optim.param_groups)
    one_cycle(optim, 0.1, 1)()
    assert str(optim.param_groups) == before


def test_the_rate_is_eased_in_and_stays(source):
    net = network()
    optim = optimiser("adamw", net, 0.01)
    advance = eased_in(optim, 5)
    rates = []
    for _ in range(12):
        rates.append(float(optim.param_groups[0]["lr"]))
        learn(net, optim, 1, source)
        advance()
    assert rates[:6] == pytest.approx([0.01 * share for share in (0.2, 0.36, 0.52, 0.68, 0.84, 1.0)])
    assert rates[5:] == pytest.approx([0.01] * 7)


def test_cocob_has_no_rate_to_ease_in():
    optim = optimiser("cocob", network(), 0.1)
    before = str(optim.param_groups)
    eased_in(optim, 5)()
    assert str(optim.param_groups) == before


@pytest.mark.parametrize(("count", "batch", "sizes"), [(10, 3, [3, 3, 3]), (9, 3, [3, 3, 3]), (2, 5, [2]), (0, 5, [])])
def test_an_epoch_is_full_batches_of_rows_that_all_differ(source, count, batch, sizes):
    batches = list(shuffled(count, batch, source))
    assert [len(rows) for rows in batches] == sizes
    rows = torch.cat(batches).tolist() if batches else []
    assert len(set(rows)) == len(rows)
    assert set(rows) <= set(range(count))


def test_every_epoch_has_its_own_order(source):
    first, second = (torch.cat(list(shuffled(50, 10, source))).tolist() for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second) == list(range(50))


def test_without_a_gpu_a_replayed_function_is_the_function_itself():
    calls = []

    def function(left: Tensor, right: Tensor) -> Tensor:
        calls.append((left, right))
        return left + right

    replayed = Replayed(function)
    left, right = torch.ones(2), torch.ones(2)
    for count in range(1, 6):
        assert replayed(left, right).tolist() == [2.0, 2.0]
        assert len(calls) == count
    assert all(first is left and second is right for first, second in calls)


class OnGpu(Tensor):
    """A tensor that says it lives on a GPU."""

    device = property(lambda self: torch.device("cuda"))


class Doubling:
    """A function of tensors, and a stand-in for the CUDA graphs that it is recorded into."""

    def __init__(self) -> None:
        self.runs: list[tuple[Tensor, Tensor]] = []
        self.replays: list[int] = []

    def __call__(self, values: Tensor) -> Tensor:
        self.runs.append((values, 2 * values))
        return self.runs[-1][1]

    @contextmanager
    def record(self, graph: SimpleNamespace) -> Iterator[None]:
        self.replays.append(0)
        number = len(self.replays) - 1
        yield
        given, result = self.runs[-1]

        def replay() -> None:
            self.replays[number] += 1
            result.copy_(2 * given)

        graph.replay = replay


@pytest.fixture
def doubling(monkeypatch: pytest.MonkeyPatch) -> Doubling:
    made, stream = Doubling(), SimpleNamespace(wait_stream=lambda other: None)
    for name, stand_in in (
        ("CUDAGraph", SimpleNamespace), ("graph", made.record), ("stream", nullcontext), ("Stream", lambda: stream),
        ("current_stream", lambda: stream),
    ):  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, stand_in)
    return made


def test_a_function_is_recorded_once_for_each_shape_and_then_replayed_on_new_numbers(doubling):
    replayed = Replayed(doubling)
    for size in (3, 2, 3):
        for number in range(10):
            answer = replayed(torch.full((size,), float(number)).as_subclass(OnGpu))
            assert answer.tolist() == [2.0 * number] * size
    assert len(doubling.runs) == 2 * (WARM_UP + 1)
    assert doubling.replays == [20 - WARM_UP, 10 - WARM_UP]


def test_the_answer_of_a_replay_is_not_written_over_by_the_next(doubling):
    replayed = Replayed(doubling)
    answers = [replayed(torch.full((1,), float(number)).as_subclass(OnGpu)) for number in range(6)]
    assert [answer.item() for answer in answers] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]


@pytest.mark.gpu
def test_on_a_gpu_a_replayed_function_runs_once_a_call_and_gives_the_same():
    total = torch.zeros(3, device="cuda")

    def function(values: Tensor) -> Tensor:
        return total.add_(values)

    replayed = Replayed(function)
    for count in range(1, 9):
        assert replayed(torch.ones(3, device="cuda")).tolist() == [count] * 3
    assert replayed(torch.ones(1, device="cuda")).tolist() == [9.0] * 3  # another shape, recorded apart


def test_a_part_of_a_saved_whole_is_found_by_its_name():
    whole = {"net.weight": torch.ones(1), "net.inner.bias": torch.zeros(1), "network.weight": torch.ones(2)}
    assert list(subset(whole, "net")) == ["weight", "inner.bias"]


@pytest.mark.parametrize(("width", "shape"), [(3, (5, 3)), (0, (0, 0))])
def test_noise_is_drawn_only_where_it_is_wanted(source, width, shape):
    noise = uniforms(5, width, source, torch.device("cpu"))
    assert noise.shape == shape
    assert bool(((noise >= 0) & (noise < 1)).all())
