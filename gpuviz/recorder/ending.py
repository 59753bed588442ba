"""Steps that end a recording, which an interruption only delays."""

from collections import deque
from collections.abc import Callable


class Ending:
    """Calls steps in order, each until it has returned or failed once.

    An interrupted step is called again at once, because what is switched on must be switched off;
    if it is interrupted again, with the next `run`.

    Args:
        steps: Functions that may be called again after an interruption.
    """

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._left = deque(steps)

    @property
    def are_done(self) -> bool:
        """Whether no step is left."""
        return not self._left

    def run(self) -> None:
        """Call the steps that are left.

        Raises:
            Exception: The first that a step raised, after all others were called.
        """
        try:
            self._run()
        except Exception:
            raise
        except BaseException:
            self._run()
            raise

    def _run(self) -> None:
        failure: Exception | None = None
        while self._left:
            try:
                self._left[0]()
            except Exception as error:  # noqa: BLE001 - raised at the end
                failure = failure or error
            self._left.popleft()
        if failure is not None:
            raise failure
