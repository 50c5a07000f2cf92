"""The experiment. A run's life: asked, made, recorded, expected, judged, told, proved (docs/architecture.md).

    asked     scenarios/, faults/            expected  oracle/ (no Spark)
    made      experiment/, experiment/workloads/        judged    checks/, checks/spark/, live/; judging.py is the one door
    recorded  history/                       told      reports/ (no Spark), reporting.py
    proved    proof/defects/, tests/generate/, selftest.py, proof/statistics/, tests/bench/

A new check is a module in checks/; a new fault a class in faults/; a new client profile a file in
oracle/profiles/; a new scenario a file in scenarios/; a new rule of outside clients a record in conform/rules/.
"""
