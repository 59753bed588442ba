"""The `cupy.ElementwiseKernel` that does what a group of elementwise launches does."""

from typing import TYPE_CHECKING

from gpuviz.advice.elementwise import SCALARS, TYPES

if TYPE_CHECKING:
    from gpuviz.advice.fusion import Groups
    from gpuviz.advice.memory_changes import DeviceBlocks

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


def fused_code(device: "DeviceBlocks", groups: "Groups") -> str:
    """Return the kernel of the first of some groups as a line of code; empty if it is unknown.

    It must have one result, at most eight launches and no reduction, and functions whose meaning
    does not depend on their types. Scalars are arguments, since their values are not recorded.
    """
    launches = device.elementwise
    own = groups.launch[groups.group == groups.group[0]].tolist()
    results = [launch for launch in own if _is_result(groups, launch)]
    if min(own) < 0 or len(own) > _MOST_LAUNCHES or len(results) != 1:
        return ""
    parameters: dict[int, str] = {}
    scalars: list[str] = []
    values: dict[int, str] = {}
    for launch in own:
        function = launches.functions[int(launches.function[launch])]
        rows = (launches.launch == launch).nonzero()[0].tolist()
        is_known = function.name in _EXPRESSIONS and len(rows) == len(function.arrays)
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
            if block not in values and block not in parameters:
                parameters[block] = f"{TYPES[launches.kind[row]]} x{len(parameters)}"
            arguments.append(values.get(block) or parameters[block].split()[1])
        values[int(launches.target[launch])] = _EXPRESSIONS[function.name].format(*arguments)
    output = TYPES[launches.output[results[0]]]
    value = values[int(launches.target[results[0]])]
    inputs = ", ".join([*parameters.values(), *scalars])
    return f'cupy.ElementwiseKernel("{inputs}", "{output} out", "out = {value}", "fused")'


def _is_result(groups: "Groups", launch: int) -> bool:
    return bool((groups.temporary[groups.launch == launch] < 0).any())
