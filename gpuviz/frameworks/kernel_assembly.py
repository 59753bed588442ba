"""What a kernel does with its pointers, read from its PTX."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuviz.frameworks.kernel_sources import READ, READ_WRITE, UNKNOWN, WRITE, Modes

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)[^{;]*\{")
_PARAMETER = re.compile(r"\.param\s+([^,]*?)([\w$]+)(\[\d+\])?\s*(?:,|$)")
# A label and a predicate, before an instruction.
_BEFORE = re.compile(r"^(?:\s*[\w$]+:)*\s*(?:@!?%\w+\s+)?")
_REGISTER = re.compile(r"%[A-Za-z_]\w*")
_ADDRESS = re.compile(r"\[([^\]]*)\]")
_TARGET = re.compile(r"\s*(\{[^}]*\}|[^,\s]+)")
_ELSEWHERE = (".param", ".shared", ".local", ".const")
# What instructions with an address do there; `prefetch` and the like are no access.
_ACCESSES = {"ld": "r", "ldu": "r", "st": "w", "red": "rw", "atom": "rw"}
_STORING = frozenset(("st", "red", "atom", "call"))
_HINTS = frozenset(("prefetch", "prefetchu", "applypriority"))
_WITHOUT_TARGET = ("st", "red", "bar", "barrier", "bra", "brx", "ret", "call", "membar", "fence")


def modes_by_entry(ptx: str, pointers: frozenset[int] | None = None) -> dict[str, Modes]:
    """Return the modes of the parameters of each kernel of a PTX module, by its name.

    Registers are followed from the parameters on, without regard to the order of instructions, so
    that loops need no care. What is stored as a value or passed to a function has an unknown mode,
    and so have two parameters that one address may come from, if it is written to.

    Args:
        ptx: The module, in the `PTX language <https://docs.nvidia.com/cuda/parallel-thread-execution/>`_.
        pointers: The places of the parameters that are pointers to global memory; if None, those
            that the module says to be such.
    """
    text = _COMMENT.sub("", ptx)
    return {
        entry[1]: _Kernel(entry[2], _body(text, entry.end()), pointers).modes()
        for entry in _ENTRY.finditer(text)
    }


def _body(text: str, start: int) -> str:
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[start : start + brace.start()]
    return text[start:]


@dataclass(frozen=True, slots=True)
class _Instruction:
    name: str  # before its first dot
    rest: str  # with the dot
    operands: str

    @property
    def addresses(self) -> list[str]:
        return _ADDRESS.findall(self.operands)

    @property
    def target(self) -> list[str]:
        """The registers that it sets."""
        found = None if self.name in _WITHOUT_TARGET else _TARGET.match(self.operands)
        return _REGISTER.findall(found[0]) if found else []

    @property
    def values(self) -> list[str]:
        """The registers that it reads beside those of addresses."""
        found = None if self.name in _WITHOUT_TARGET else _TARGET.match(self.operands)
        return _REGISTER.findall(_ADDRESS.sub("", self.operands[found.end() if found else 0 :]))


def _instructions(body: str) -> Iterator[_Instruction]:
    for statement in body.split(";"):
        text = _BEFORE.sub("", statement.strip()).strip("{} \t\n")
        opcode, _, operands = text.replace("\t", " ").partition(" ")
        name, dot, rest = opcode.partition(".")
        if name and name not in _HINTS and not opcode.startswith("."):
            yield _Instruction(name, dot + rest, operands.strip())


@dataclass
class _Kernel:
    """A kernel; parameters are bits of integers."""

    parameters: str
    body: str
    pointers: frozenset[int] | None
    taint: dict[str, int] = field(default_factory=dict)
    read: int = 0
    written: int = 0
    lost: int = 0

    def modes(self) -> Modes:
        """Return the mode of each parameter."""
        found = _PARAMETER.findall(self.parameters)
        self.places = {name: place for place, (_, name, _) in enumerate(found)}
        self.instructions = list(_instructions(self.body))
        self._follow()
        self.known = self._pointers(found)
        for instruction in self.instructions:
            self._judge(instruction)
        return tuple(
            UNKNOWN if extent or not self.known >> place & 1 else self._mode(1 << place)
            for place, (_, _, extent) in enumerate(found)
        )

    def _mode(self, bit: int) -> str:
        if self.lost & bit:
            return UNKNOWN
        if self.written & bit:
            return READ_WRITE if self.read & bit else WRITE
        return READ if self.read & bit else UNKNOWN

    def _follow(self) -> None:
        taint = self.taint
        changed = True
        while changed:
            changed = False
            for each in self.instructions:
                came = self._source(each)
                for register in each.target if came else ():
                    if taint.get(register, 0) | came != taint.get(register, 0):
                        taint[register] = taint.get(register, 0) | came
                        changed = True

    def _source(self, each: _Instruction) -> int:
        """Return the parameters that a result comes from; what is loaded from memory is none."""
        if each.name in {"ld", "ldu", "atom", "call"}:
            named = each.addresses if each.rest.startswith(".param") else ()
            return sum({1 << self.places[name] for name in named if name in self.places})
        return self._of(each.values)

    def _of(self, registers: list[str]) -> int:
        found = 0
        for register in registers:
            found |= self.taint.get(register, 0)
        return found

    def _pointers(self, found: list[tuple[str, str, str]]) -> int:
        if self.pointers is not None:
            return sum(1 << place for place in self.pointers)
        known = sum(1 << place for place, (kind, _, _) in enumerate(found) if ".ptr" in kind)
        for each in self.instructions:
            if each.name == "cvta" and ".to.global" in each.rest:
                came = self._of(each.values)
                known |= came if came.bit_count() == 1 else 0
        return known

    def _judge(self, each: _Instruction) -> None:
        if not each.rest.startswith(".param"):
            # Its address is taken.
            for name in self.places.keys() & set(re.findall(r"[\w$]+", each.operands)):
                self.lost |= 1 << self.places[name]
        if each.name in _STORING:
            self.lost |= self._of(each.values) & self.known
        came = [self._of(_REGISTER.findall(address)) for address in each.addresses]
        if each.name == "cp" and each.rest.startswith(".async") and "tensor" not in each.rest:
            to_global = ".global.shared" in each.rest
            self._access(came[:1] if to_global else came[1:2], "w" if to_global else "r")
        elif not any(space in each.rest for space in _ELSEWHERE):
            self._access(came, _ACCESSES.get(each.name, ""))

    def _access(self, came: list[int], how: str) -> None:
        for bits in came:
            pointers = bits & self.known
            if not how or not pointers or ("w" in how and pointers.bit_count() > 1):
                self.lost |= bits
                continue
            self.read |= pointers if "r" in how else 0
            self.written |= pointers if "w" in how else 0
