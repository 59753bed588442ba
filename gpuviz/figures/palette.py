"""Colours by meaning, the same in charts, pictures of cells, reports and the dashboard.

They are those of the light palette of the dashboard, `extension/src/view/theme.css`.
"""

ALLOCATED = "#0072b2"
RESERVED = "#6e7781"
FREE = "#868d96"
KERNEL = "#7263b6"
MEMSET = "#8f7a00"
COPIES = {
    "host_to_device": "#00875f",
    "device_to_host": "#c07a00",
    "device_to_device": "#00788c",
    "peer_to_peer": "#00788c",
    "peer_to_host": "#00788c",
    "host_to_peer": "#00788c",
    "host_to_host": "#78818b",
    "": "#78818b",
}
