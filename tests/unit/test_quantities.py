"""Formatting of sizes and times, with the same cases as extension/src/base/format.test.ts."""

import pytest

from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_duration,
    format_names,
    format_share,
    parse_bytes,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1572864, "1.50 MiB"),
        (12636, "12.3 KiB"),
        (1048575, "1.00 MiB"),
        (10239, "10.0 KiB"),
        (80 << 30, "80.0 GiB"),
        (2176 << 20, "2.13 GiB"),
        (-2048, "-2.00 KiB"),
    ],
)
def test_bytes_are_written_in_binary_units_with_three_digits(size, text):
    assert format_bytes(size) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (7, "7 ns"),
        (999, "999 ns"),
        (999_600, "1.00 ms"),
        (12345, "12.3 µs"),
        (1_500_000_000, "1.50 s"),
        (1_125_000_000, "1.13 s"),
        (62_500_000_000, "1 min 03 s"),
        (125_000_000_000, "2 min 05 s"),
        (3_725_000_000_000, "1 h 02 min 05 s"),
    ],
)
def test_durations_take_the_unit_that_fits_them(ns, text):
    assert format_duration(ns) == text


def test_shares_are_percentages_and_counts_have_their_thousands_apart():
    assert format_share(0.1234) == "12 %"
    assert format_share(0.125) == "13 %"
    assert format_share(0.004) == "0.4 %"
    assert format_share(0) == "0 %"
    assert format_count(1234567) == "1,234,567"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512 MiB", 512 << 20),
        ("1.5GiB", 3 << 29),
        ("24 MB", 24_000_000),
        ("100 kb", 100_000),
        ("2 TiB", 2 << 40),
        (" 7 B ", 7),
        ("0", 0),
        ("4096", 4096),
        ("", None),
        ("many", None),
        ("-1 MiB", None),
        ("1 MiB or so", None),
        ("100 K", None),
        ("1e3 MB", None),
        ("٣ MiB", None),
    ],
)
def test_sizes_are_read_with_decimal_and_binary_units(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, ""),
        (1, "n1"),
        (2, "n1 and n2"),
        (3, "n1, n2 and n3"),
        (4, "n1, n2 and 2 others"),
        (1003, "n1, n2 and 1,001 others"),
    ],
)
def test_names_are_listed_in_a_sentence(count, text):
    assert format_names([f"n{number}" for number in range(1, count + 1)], 3) == text
