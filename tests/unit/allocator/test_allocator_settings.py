"""The text of settings contains all of them."""

import pytest

from gpuviz import _core
from gpuviz.allocator.settings import settings_text

parse = _core.AllocatorSettings.parse


@pytest.mark.parametrize(
    "text",
    [
        "",
        "expandable_segments:True",
        "max_split_size_mb:64,garbage_collection_threshold:0.7",
        "large_segment_size_mb:40,max_non_split_rounding_mb:50",
        "roundup_power2_divisions:8,per_process_memory_fraction:0.5",
    ],
)
def test_options_that_differ_from_their_defaults_are_named(text):
    assert sorted(settings_text(parse(text)).split(",")) == sorted(text.split(","))


def test_each_interval_of_the_rounding_is_named_where_they_differ():
    text = settings_text(parse("roundup_power2_divisions:[256:1,512:2,>:8]"))

    assert text.startswith("roundup_power2_divisions:[1:1,2:1,")
    assert parse(text).roundup_power2_divisions["512"] == 2
    assert parse(text).roundup_power2_divisions["32768"] == 8


def test_the_text_of_several_changes_leads_to_the_same_settings():
    changed = parse("expandable_segments:True,max_split_size_mb:64").updated(
        "garbage_collection_threshold:0.5",
    )

    assert settings_text(changed) == "expandable_segments:True,garbage_collection_threshold:0.5"
