"""The `cupy.ElementwiseKernel` that does what a group of elementwise launches does."""

import re

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import SCALARS, TYPES, Function
from gpuviz.advice.fusion.fusion import Groups
from gpuviz.analysis.launches import stacks_of

# A longer expression is better written by hand.
_MOST_LAUNCHES = 8
_EXPRESSIONS = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "true_divide": "({0} / {1})",
    "negative": "(-{0})",
    "square": "({0} * {0})",
    "power": "pow({0}, {1})",
    "absolute": "abs({0})",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "sqrt": "sqrt({0})",
    "exp": "exp({0})",
    "log": "log({0})",
    "sin": "sin({0})",
    "cos": "cos({0})",
    "tanh": "tanh({0})",
    "copy": "{0}",
}
# Kinds of NumPy's types.
_INTEGERS = ("b", "i", "u")
_INT_BYTES = 4
# Views of an array may begin with the same element as the array, in another order or shape.
_VIEWS = re.compile(
    r"\[|\.m?T\b|transpose|axes|axis|permute|reshape|ravel|flip|rot90|diag|strided|broadcast"
)


def fused_code(device: DeviceBlocks, groups: Groups) -> str:
    """Return the kernel of the first of some groups as a line of code; empty if it is unknown.

    It must have one result, at most eight launches and no reduction, and functions whose meaning
    does not depend on their types, nor may it round a result on the way. Scalars are arguments,
    since their values are not recorded. What a kernel reads from other addresses of an array is
    another argument, and so is what it reads again where the text has views of arrays, of which
    only the first address is known.
    """
    launches = device.elementwise
    is_first = groups.group == groups.group[0]
    own = groups.launch[is_first].tolist()
    has_views = _has_views(device, groups.call[is_first])
    results = [launch for launch in own if _is_result(groups, launch)]
    if min(own) < 0 or len(own) > _MOST_LAUNCHES or len(results) != 1:
        return ""
    parameters: dict[tuple[int, int, int], str] = {}
    scalars: list[str] = []
    values: dict[int, str] = {}
    for launch in own:
        function = launches.functions[int(launches.function[launch])]
        rows = (launches.launch == launch).nonzero()[0].tolist()
        is_known = function.name in _EXPRESSIONS and len(rows) == len(function.arrays)
        is_known &= _is_exact(function, is_last=launch == results[0])
        if not is_known or any(launches.kind[row] < 0 for row in rows):
            return ""
        arguments = []
        for kind in function.inputs:
            if kind in SCALARS:
                scalars.append(f"{function.output} s{len(scalars)}")
                arguments.append(f"s{len(scalars) - 1}")
                continue
            row = rows.pop(0)
            block = int(launches.source[row])
            if block in values:
                arguments.append(values[block])
                continue
            key = block, int(launches.address[row]), row if has_views else 0
            parameters.setdefault(key, f"{TYPES[launches.kind[row]]} x{len(parameters)}")
            arguments.append(parameters[key].split()[1])
        values[int(launches.target[launch])] = _EXPRESSIONS[function.name].format(*arguments)
    output = TYPES[launches.output[results[0]]]
    value = values[int(launches.target[results[0]])]
    inputs = ", ".join([*parameters.values(), *scalars])
    return f'cupy.ElementwiseKernel("{inputs}", "{output} out", "out = {value}", "fused")'


def _is_exact(function: Function, *, is_last: bool) -> bool:
    """Return whether C computes what the function does, also with what follows it.

    C divides integers without a remainder, computes small ones as ``int``, and converts no result
    on the way.
    """
    kinds = [np.dtype(each) for each in function.arrays]
    if function.name == "true_divide" and len(kinds) == len(function.inputs):
        return any(each.kind in "fc" for each in kinds)
    output = np.dtype(function.output)
    is_small = output.kind in _INTEGERS and output.itemsize < _INT_BYTES
    is_narrower = function.name == "copy" and (
        output.itemsize < kinds[0].itemsize or (output.kind in _INTEGERS and kinds[0].kind in "fc")
    )
    return is_last or not (is_small or is_narrower)


def _has_views(device: DeviceBlocks, calls: np.ndarray) -> bool:
    stacks = np.unique(stacks_of(device.recording.tables, calls)).tolist()
    return any(_VIEWS.search(device.recording.call_stacks.call_site(stack)[1]) for stack in stacks)


def _is_result(groups: Groups, launch: int) -> bool:
    return bool((groups.temporary[groups.launch == launch] < 0).any())
