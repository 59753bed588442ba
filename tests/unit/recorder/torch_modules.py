"""Modules that are called as torch calls its own."""


class Module:
    """A module like torch's."""

    def __init__(self, **children):
        self.children = children

    def _wrapped_call_impl(self, *args):
        return self.forward(*args)

    __call__ = _wrapped_call_impl

    def named_modules(self):
        yield "", self
        for name, child in self.children.items():
            for path, module in child.named_modules():
                yield f"{name}.{path}" if path else name, module


class Operation(Module):
    """Captures one stack."""

    def forward(self, capture):
        return [capture()]


class Layers(Module):
    """Calls others in one line."""

    def forward(self, capture):
        return [number for child in self.children.values() for number in child(capture)]
