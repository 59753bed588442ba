"""Moments of failures, and their pages."""

from gpuviz.out_of_memory.failures import failed_rows
from gpuviz.out_of_memory.last_moments import last_moments
from gpuviz.report.out_of_memory import build_page


def moment_of(recording):
    return last_moments(recording, failed_rows(recording)[-1])


def page_of(recording):
    moment = moment_of(recording)
    return build_page(moment, moment.out_of_memory()[-1])
