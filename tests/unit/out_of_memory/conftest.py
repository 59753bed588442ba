from tests.unit.recorder.conftest import new_recorder

__all__ = ["new_recorder"]
