"""Accesses to single bytes: the strongest of several, and which of them conflict."""

from collections import defaultdict

from tests.litmus.oracle_objects import Accessed, Block, ByteAccess

STRENGTH = ("read", "unknown", "atomic", "write")


def strongest(accesses: list[tuple[str, int | None]]) -> ByteAccess:
    mode = max((mode for mode, _ in accesses), key=STRENGTH.index)
    begins = [begin for each, begin in accesses if each == mode]
    is_exact = None in begins
    pointers = frozenset() if is_exact else frozenset(each for each in begins if each is not None)
    return mode, is_exact, pointers


def union(accesses: list[Accessed]) -> list[tuple[Block, dict[int, ByteAccess]]]:
    found: dict[int, tuple[Block, dict[int, list[ByteAccess]]]] = {}
    for each in accesses:
        _, of_block = found.setdefault(id(each.block), (each.block, defaultdict(list)))
        for byte, access in each.bytes.items():
            of_block[byte].append(access)
    return [
        (block, {byte: strongest_of(all_) for byte, all_ in of_block.items()})
        for block, of_block in found.values()
    ]


def strongest_of(accesses: list[ByteAccess]) -> ByteAccess:
    plain = [
        (mode, begin)
        for mode, is_exact, pointers in accesses
        for begin in ([None] if is_exact else pointers)
    ]
    return strongest(plain)


def conflict(first: ByteAccess, second: ByteAccess) -> bool:
    modes = {first[0], second[0]}
    if modes in ({"read"}, {"atomic"}, {"unknown"}):
        return False
    return first[1] or second[1] or bool(first[2] & second[2])


def kind_of(first: str, second: str) -> str:
    if second == "read":
        return "RAW"
    return "WAR" if first == "read" else "WAW"


def is_known(access: ByteAccess) -> bool:
    return access[1] and access[0] != "unknown"


def is_superseded(first: Accessed, byte: int, between: list[Accessed]) -> bool:
    mode = first.bytes[byte][0]
    for each in between:
        if each.id == first.id or byte not in each.bytes:
            continue
        access = each.bytes[byte]
        if access[0] == "write" and access[1]:
            return True
        if each.where == first.where and access[0] == mode:
            return True
    return False
