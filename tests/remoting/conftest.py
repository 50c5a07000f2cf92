"""Hypothesis here without a deadline: a busy machine is no defect of a pure function."""

from hypothesis import settings

settings.register_profile("nemesrv", deadline=None)
settings.load_profile("nemesrv")
