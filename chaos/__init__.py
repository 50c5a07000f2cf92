"""Runs and judges experiments. A run's stages are: asked, made, recorded, expected, judged, told, proved.

    asked     scenarios/, settings/, faults/      expected  oracle/ (no Spark)
    made      experiment/                         judged    checks/, live/; judging.py is the one door
    recorded  history/, fronts/, logs/, apache/   told      reports/ (no Spark), reporting.py
    proved    proof/

The page docs/architecture.md has a recipe for each kind of addition.
"""
