"""Fits charts to the width of their container."""

import anywidget

# Plotly draws before its widget is on the page, then at a width of its own, and measures its place
# again only when it is told that the window has another size. A side bar that opens is no such.
_TELL_OF_SIZES = """
export default {
  render({ el }) {
    const observer = new ResizeObserver(() => {
      window.dispatchEvent(new Event("resize"));
    });
    observer.observe(el);
    return () => observer.disconnect();
  },
};
"""


class Width(anywidget.AnyWidget):
    """Lets the charts beside it follow its width; shows nothing."""

    _esm = _TELL_OF_SIZES
