"""What every network here is trained with: an optimiser, shuffled batches, and steps replayed as CUDA graphs."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Literal, TypeAlias, TypeVar, get_args

import parameterfree
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from tacit.errors import CorruptFileError, InvalidInputError

OptimiserName: TypeAlias = Literal["adamw", "cocob"]
LossName: TypeAlias = Literal["squared", "log"]
Network = TypeVar("Network", bound=nn.Module)
Shapes: TypeAlias = tuple[tuple[torch.Size, torch.dtype], ...]

# Plain calls before a step is recorded, so that lazily made state (optimisers, cuDNN plans) exists by then.
WARM_UP = 3


def check_names(settings: str, loss: str, optimiser: str) -> None:
    """Refuse a loss or an optimiser that is not one of ours: it would be taken for another."""
    for value, names in ((loss, get_args(LossName)), (optimiser, get_args(OptimiserName))):
        if not isinstance(value, str) or value not in names:
            raise InvalidInputError(settings, f"expected one of {', '.join(names)}, got {value!r}")


def optimiser(name: OptimiserName, network: nn.Module, rate: float) -> Optimizer:
    """AdamW with decoupled weight decay, or COCOB, the paper's choice, which has no rate."""
    parameters = list(network.parameters())
    if name == "cocob":
        cocob: Optimizer = parameterfree.COCOB(parameters)
        return cocob
    device = parameters[0].device
    # Inside a CUDA graph a rate is a constant unless it is a tensor.
    return torch.optim.AdamW(
        parameters,
        lr=torch.tensor(rate, device=device) if device.type == "cuda" else rate,
        weight_decay=1e-2,
        capturable=device.type == "cuda",
    )


def one_cycle(optim: Optimizer, rate: float, steps: int) -> Callable[[], None]:
    """Call after each step: the rate rises to `rate` over a third of the steps and falls to nothing; COCOB has none."""
    if not isinstance(optim, torch.optim.AdamW):
        return lambda: None
    # Momentum stays: it would be frozen into a CUDA graph.
    return _stepped(
        torch.optim.lr_scheduler.OneCycleLR(optim, rate, total_steps=steps + 1, cycle_momentum=False)
    )


def _stepped(schedule: torch.optim.lr_scheduler.LRScheduler) -> Callable[[], None]:
    def advance() -> None:
        with warnings.catch_warnings():
            # A replayed graph steps the optimiser without its Python method being called.
            warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step", UserWarning)
            schedule.step()

    return advance


def eased_in(optim: Optimizer, steps: int) -> Callable[[], None]:
    """Call after each step: the rate rises to what it is over the first `steps`, and stays; COCOB has none."""
    if not isinstance(optim, torch.optim.AdamW):
        return lambda: None
    return _stepped(torch.optim.lr_scheduler.LinearLR(optim, 1 / steps, total_iters=steps))


def shuffled(count: int, batch: int, source: torch.Generator) -> Iterator[Tensor]:
    """Row numbers of one epoch in full batches; what is left over is left for another epoch's order."""
    batch = max(1, min(batch, count))
    order = torch.randperm(count, generator=source, device=source.device)
    for start in range(0, count - batch + 1, batch):
        yield order[start : start + batch]


def optimiser_tensors(optim: Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as flat tensors: 'parameter number.name'."""
    return {
        f"{number}.{name}": torch.as_tensor(value)
        for number, entries in optim.state_dict()["state"].items()
        for name, value in entries.items()
    }


def restore_optimiser(optim: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Take back what `optimiser_tensors` gave, copied: steps change state in place."""
    document = optim.state_dict()
    parameters = optim.param_groups[0]["params"]
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        if not number.isdecimal() or int(number) >= len(parameters):
            raise CorruptFileError(f"the saved optimiser does not fit its network: it has no parameter {number!r}")
        shape = parameters[int(number)].shape
        if value.shape not in (shape, ()):
            raise CorruptFileError(f"the saved optimiser does not fit its network: {key} is {tuple(value.shape)}")
        state.setdefault(int(number), {})[name] = value.clone()
    document["state"] = state
    optim.load_state_dict(document)


class Replayed:
    """A function of tensors that, on a GPU, is recorded once per shape and then replayed as one CUDA graph.

    Small networks on small batches are bound by the launching of kernels; a replay is one launch. Each call runs the
    function exactly once, recorded or not. The function must keep its state in place and read nothing back.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self._function = function
        self._plain_calls: dict[Shapes, int] = {}
        self._graphs: dict[Shapes, tuple[torch.cuda.CUDAGraph, tuple[Tensor, ...], Tensor]] = {}

    def __call__(self, *inputs: Tensor) -> Tensor:
        if inputs[0].device.type != "cuda":
            return self._function(*inputs)
        shapes: Shapes = tuple((tensor.shape, tensor.dtype) for tensor in inputs)
        if shapes not in self._graphs:
            self._plain_calls[shapes] = calls = self._plain_calls.get(shapes, 0) + 1
            if calls <= WARM_UP:
                return self._on_side_stream(inputs)
            self._record(shapes, inputs)
        graph, held, result = self._graphs[shapes]
        for place, value in zip(held, inputs, strict=True):
            place.copy_(value)
        graph.replay()
        return result.clone()

    def _on_side_stream(self, inputs: tuple[Tensor, ...]) -> Tensor:
        # Recording needs the lazily made state to have been made on a stream other than the default one.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = self._function(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        return result

    def _record(self, shapes: Shapes, inputs: tuple[Tensor, ...]) -> None:
        held = tuple(tensor.clone() for tensor in inputs)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self._function(*held)
        self._graphs[shapes] = (graph, held, result)


def subset(tensors: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    """The entries 'part.name' of a saved whole, by name."""
    return {key.removeprefix(f"{part}."): value for key, value in tensors.items() if key.startswith(f"{part}.")}


def uniforms(count: int, width: int, source: torch.Generator, device: torch.device) -> Tensor:
    """Numbers in [0, 1) (count, width), drawn where `source` lives; an empty tensor for width 0."""
    return torch.rand(count if width else 0, width, generator=source, device=source.device).to(device)


class Average(Generic[Network]):
    """A copy of a network whose weights are the running mean of the network's own: steadier than any of them.

    At `rate` 0 it is the network itself.
    """

    def __init__(self, network: Network, rate: float) -> None:
        self.network = copy.deepcopy(network).requires_grad_(False) if rate else network
        self._network = network
        self._share = 1 - rate
        self._means: list[Tensor] = list(self.network.parameters())
        self._values: list[Tensor] = list(network.parameters())

    @torch.no_grad()
    def update(self) -> None:
        """After a step; in place, so that it can be part of a CUDA graph."""
        if self._share < 1:
            torch._foreach_lerp_(self._means, self._values, self._share)

    def reset(self) -> None:
        """Start again from all that the network holds now: a scale of its data is not averaged."""
        if self._share < 1:
            self.network.load_state_dict(self._network.state_dict())


class EarlyStopping:
    """Trains in epochs and leaves the network with the weights that scored lowest.

    `patience` is how many scores may pass without a lower one, `interval` how many steps lie between two at least;
    the first `unscored` steps have none.
    """

    def __init__(
        self, network: nn.Module, score: Callable[[], float], patience: int | None = None, interval: int = 1,
        unscored: int = 0,
    ) -> None:  # fmt: skip
        self._network = network
        self._score = score
        self._patience = patience
        self._interval = interval
        self._unscored = unscored

    def run(
        self, learn: Callable[[Tensor], None], count: int, batch: int, epochs: int, source: torch.Generator
    ) -> float:
        """`learn` gets row numbers below `count`, a batch at a time. Returns the lowest score."""
        best = math.inf if self._unscored else self._score()
        kept = {name: value.clone() for name, value in self._network.state_dict().items()}
        stale, waited = 0, -self._unscored
        for epoch in range(1, epochs + 1):
            for rows in shuffled(count, batch, source):
                learn(rows)
                waited += 1
            if waited < self._interval and epoch < epochs:
                continue
            score = self._score()
            stale, waited = stale + 1, 0
            if score < best:
                best, stale = score, 0
                for name, value in self._network.state_dict().items():
                    kept[name].copy_(value)
            if stale == self._patience:
                break
        self._network.load_state_dict(kept)
        return best
