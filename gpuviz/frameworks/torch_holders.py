"""The memory of torch's tensors, and the references between them that Python does not show.

A tensor's memory belongs to its storage, which views share. The gradient of a tensor, the graph
that autograd needs for a backward pass, and the tensors that this graph saves are held in C++. This
asks torch for them, and calls no code of the program: neither of its tensors' classes, nor the
hooks with which it unpacks saved tensors.
"""

import gc
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from gpuviz import _core
from gpuviz.frameworks.torch import is_installed as shared_with_torch

GRAPH_OF_AUTOGRAD = "graph of autograd"
_NATIVE = "native"
_RAW = "_raw_saved_"
_LEAF = "AccumulateGrad"


@dataclass(frozen=True, eq=False, slots=True)
class TensorBlock:
    """A block of memory that tensors use."""

    address: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class HiddenReferences:
    """References that objects do not show to the garbage collector.

    Attributes:
        objects: The objects that have or are held by such a reference, each once.
        counts: By how much the references to each are more than Python counts.
        pairs: Positions of a holder and of what it holds.
        texts: How a holder refers to what it holds, by the ids of both, such as ``.grad``.
    """

    objects: list[Any] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    pairs: list[tuple[int, int]] = field(default_factory=list)
    texts: dict[tuple[int, int], str] = field(default_factory=dict)


def own_segments() -> list[dict[str, Any]]:
    """Return ``torch.cuda.memory_snapshot()``; nothing unless torch's own allocator is in use."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    # The device may have failed.
    with suppress(Exception):
        if cuda.is_initialized() and not shared_with_torch():
            is_own = cuda.get_allocator_backend() == _NATIVE
            found: list[dict[str, Any]] = cuda.memory_snapshot() if is_own else []
            return found
    return []


def release_cached() -> None:
    """Release the unused segments of torch's own allocator."""
    if own_segments():
        sys.modules["torch"].cuda.empty_cache()


def hidden_references(sizes: Mapping[int, int]) -> HiddenReferences:
    """Return the references of torch's tensors, and of the graphs of autograd behind them.

    Args:
        sizes: The bytes of each block of memory, by address.
    """
    torch: Any = sys.modules.get("torch")
    if not sizes or not hasattr(getattr(torch, "_C", None), "_data_address"):
        return HiddenReferences()
    search = _Search(torch, sizes)
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - so that no class's own code runs
        search.run(_tensors_and_storages(torch))
    return search.found


def _tensors_and_storages(torch: ModuleType) -> Iterator[tuple[Any, bool]]:
    """Yield the tensors and storages of this process, and whether it is a tensor."""
    of_tensors, of_storages = torch._C.TensorBase, torch._C.StorageBase  # noqa: SLF001
    either = (of_tensors, of_storages)
    types = [each for each, _ in _core.object_types() if issubclass(each, either)]
    for each in _core.objects_of(types):
        yield each, issubclass(type(each), of_tensors)


class _Search:
    """Collects references; the objects are kept in `found` only."""

    def __init__(self, torch: ModuleType, sizes: Mapping[int, int]) -> None:
        self.found = HiddenReferences()
        self._native = torch._C  # noqa: SLF001 - there is no public way
        self._of_tensor = vars(torch._C.TensorBase)  # noqa: SLF001
        self._sizes = sizes
        self._addresses = sorted(sizes)
        # The position of each object by id, and that of a block by address.
        self._positions: dict[int, int] = {}
        self._blocks: dict[int, int] = {}
        # The tensors that use each storage, and its object in Python, by position.
        self._users: dict[int, list[int]] = {}
        self._objects_of_storages: dict[int, int] = {}
        self._waiting: list[int] = []
        self._of_object, self._of_node = _references_to_wrappers(torch)

    def run(self, objects: Iterable[tuple[Any, bool]]) -> None:
        for each, is_tensor in objects:
            # Of a tensor of an unknown kind, torch may raise anything.
            with suppress(Exception):
                if is_tensor:
                    self._tensor(each)
                else:
                    self._storage(each)
            while self._waiting:
                with suppress(Exception):
                    self._follow(self.found.objects[self._waiting.pop()])
        for storage, position in self._objects_of_storages.items():
            # A storage keeps its object in Python, as long as a tensor uses it.
            users = [each for each in self._users[storage] if each != position]
            self.found.counts[position] += len(users)
            self.found.pairs.extend((each, position) for each in users)

    def _storage(self, storage: Any) -> None:
        address = self._native.StorageBase.data_ptr(storage)
        number = storage._cdata  # noqa: SLF001
        if self._block_at(address) is not None:
            is_shared = self._native._storage_Use_Count(number) > 1  # noqa: SLF001
            self._add(storage, -self._of_object if is_shared else 0)
            self._objects_of_storages[number] = self._positions[id(storage)]
            self._hold_storage(storage, address, number)

    def _tensor(self, tensor: Any) -> None:
        if id(tensor) in self._positions:
            return
        uses = self._get("_use_count", tensor)()
        # The object itself is one use.
        self._add(tensor, uses - 1 - (self._of_object if uses > 1 else 0))
        self._waiting.append(self._positions[id(tensor)])
        # Some kinds of tensors have no storage.
        with suppress(Exception):
            address = self._native._data_address(tensor)  # noqa: SLF001
            self._hold_storage(tensor, address, self._native._storage_address(tensor))  # noqa: SLF001

    def _follow(self, value: Any) -> None:
        if issubclass(type(value), self._native.TensorBase):
            self._follow_tensor(value)
        else:
            self._follow_node(value)

    def _follow_tensor(self, tensor: Any) -> None:
        # Asking others for their gradient makes torch warn.
        if self._get("is_leaf", tensor) or self._get("retains_grad", tensor):
            gradient = self._get("grad", tensor)
            if gradient is not None:
                self._hold_tensor(tensor, gradient, ".grad")
        if self._get("_is_view", tensor)():
            self._hold_tensor(tensor, self._get("_base", tensor), "")
        node = self._get("grad_fn", tensor)
        if node is not None:
            self._hold_node(tensor, node, f" → {GRAPH_OF_AUTOGRAD}")

    def _follow_node(self, node: Any) -> None:
        kind = type(node)
        if kind.__name__ == _LEAF:
            self._hold_tensor(node, node.variable, "")
        for following, _ in node.next_functions:
            if following is not None:
                self._hold_node(node, following, "")
        for name in (each for each in dir(kind) if each.startswith(_RAW)):
            saved = getattr(node, name)
            for each in saved if type(saved) is tuple else (saved,):
                if each is not None:
                    self._hold_saved(node, each, f" → {name[len(_RAW) :]} of {kind.__name__}")

    def _hold_saved(self, node: Any, saved: Any, text: str) -> None:
        """Add what a node saves, unless this release of torch does not show that."""
        value = getattr(saved, "data", None)
        if issubclass(type(value), self._native.TensorBase):
            self._hold_tensor(node, value, text)
        elif value is not None and gc.is_tracked(value):  # what a hook of the program made of it
            if id(value) not in self._positions:
                self._add(value, 0)
            self._pair(node, value, text)

    def _hold_tensor(self, holder: Any, tensor: Any, text: str) -> None:
        self._tensor(tensor)
        self._pair(holder, tensor, text)

    def _hold_node(self, holder: Any, node: Any, text: str) -> None:
        if id(node) not in self._positions:
            self._add(node, -self._of_node)
            self._waiting.append(self._positions[id(node)])
        self.found.counts[self._positions[id(node)]] += 1
        self._pair(holder, node, text)

    def _hold_storage(self, holder: Any, address: int, storage: int) -> None:
        at = self._block_at(address)
        if at is None:
            return
        if at not in self._blocks:
            block = TensorBlock(at, self._sizes[at])
            self._add(block, 0)
            self._blocks[at] = self._positions[id(block)]
        if storage not in self._users:
            self._users[storage] = []
            uses = self._native._storage_Use_Count(storage)  # noqa: SLF001
            self.found.counts[self._blocks[at]] += uses
        self._users[storage].append(self._positions[id(holder)])
        self._pair(holder, self.found.objects[self._blocks[at]], "")

    def _block_at(self, address: int) -> int | None:
        """Return the address of the block around an address."""
        row = bisect_right(self._addresses, address) - 1
        if row < 0:
            return None
        begin = self._addresses[row]
        return begin if address - begin < self._sizes[begin] else None

    def _get(self, name: str, tensor: Any) -> Any:
        """Return an attribute, whatever the tensor's class makes of it."""
        return self._of_tensor[name].__get__(tensor)

    def _add(self, value: Any, count: int) -> None:
        self._positions[id(value)] = len(self.found.objects)
        self.found.objects.append(value)
        self.found.counts.append(count)

    def _pair(self, holder: Any, held: Any, text: str) -> None:
        self.found.pairs.append((self._positions[id(holder)], self._positions[id(held)]))
        self.found.texts.setdefault((id(holder), id(held)), text)


def _references_to_wrappers(torch: ModuleType) -> tuple[int, int]:
    """Return how many references C++ has to a tensor's object, and to a node's, that Python counts.

    Releases of torch differ.
    """
    with torch.enable_grad():
        leaf = torch.zeros(1, device="cpu", requires_grad=True)
        leaf.grad = torch.zeros(1, device="cpu")
        gradient, product = leaf.grad, leaf * 1
        node = product.grad_fn
        # Two are of the variable here and of the call.
        return sys.getrefcount(gradient) - 2, sys.getrefcount(node) - 2
