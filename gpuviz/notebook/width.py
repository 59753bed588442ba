"""Fits charts to the width of their container."""

import anywidget

# Plotly draws before its widget is on the page, at a default width, and measures its container
# again only when the window is resized. Opening a side bar does not resize the window.
_FORWARD_RESIZES = """
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
    """An invisible widget that makes neighbouring charts follow its width."""

    _esm = _FORWARD_RESIZES
