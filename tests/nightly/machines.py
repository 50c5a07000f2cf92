"""What runs nightly only of more than one machine: three hosts, Hadoop's file system, the recipes' own tools."""

from .record import Nightly

_TOOLS = "tests/deploy/test_tools.py"
_RECIPES = "tests/deploy/test_recipes.py"
_HOSTS = "tests/hosts/test_hosts.py"
_CUT_BETWEEN_HOSTS = f"{_HOSTS}::test_a_partition_between_hosts_is_judged_as_one_within_one"

NIGHTLY = (
    Nightly(
        "tests/test_readme_recipes.py::test_a_ci_job",
        "README's recipe of a CI job, as written",
        (
            "tests/test_readme.py",
            "tests/test_tutorial.py",
        ),
    ),
    Nightly(
        "tests/test_readme_recipes.py::test_your_client",
        "README's recipe of a client: `conform`, `up`, faults and `watch`, as written",
        (
            "tests/test_readme.py",
            "tests/conformance/test_command.py",
        ),
    ),
    Nightly(
        "tests/test_readme_recipes.py::test_last_nights_incident",
        "README's recipe of an incident: `import`, `replay` and `predict`, as written",
        (
            "tests/test_readme.py",
            "tests/operations/importing",
        ),
    ),
    Nightly(
        "tests/deploy/test_workflows.py::test_each_step_of_a_leg_runs_in_the_example_project",
        "the workflows of deploy/ci: the shell of each step, in each leg, from a checkout, a wheel and an index",
        (
            "tests/deploy/test_workflows.py::test_every_value_of_a_leg_is_used_and_its_shell_is_well_formed",
            "tests/deploy/test_workflows.py::test_one_variable_says_where_nemesrv_comes_from",
            "tests/packaging/test_wheel.py",
        ),
    ),
    Nightly(
        "tests/deploy/test_workflows.py::test_the_release_gate_passes_with_the_report_extra_alone",
        "deploy/ci/gate.yml, in an empty environment: the shell of each step, from a checkout",
        (
            "tests/deploy/test_workflows.py::test_each_step_of_the_gate_is_in_its_tutorial",
            "tests/packaging/test_extras.py",
        ),
    ),
    Nightly(
        "tests/packaging/test_dist.py::test_the_wheel_and_the_source_distribution_are_built_and_readmes_words_work",
        "`make dist`: README's own commands with the wheel, in an empty environment, dependencies by pip",
        ("tests/packaging/test_wheel.py", "tests/packaging/test_extras.py"),
    ),
    Nightly(
        "tests/bench/test_collecting_bench.py"
        "::test_what_three_hosts_recorded_is_collected_in_two_ways_and_both_are_timed",
        "`python -m tests.bench collect` over a Ray cluster of three nodes (15 s)",
        ("tests/chaos/experiment/hosts/test_collect.py",),
    ),
    Nightly(
        "tests/hosts/test_clocks.py::test_the_offset_of_a_host_is_within_its_bound_of_the_truth",
        "what is measured of three hosts, one of whose clocks is 700 ms ahead",
        ("tests/chaos/experiment/hosts/test_clocks.py", "tests/chaos/history/test_host_clocks.py"),
    ),
    Nightly(
        "tests/hosts/test_lost_rows.py"
        "::test_the_history_of_a_run_that_lost_a_host_is_judged_without_that_host_s_last_rows",
        "a host of three is gone in mid-run; what was collected is judged, and what is missing is said (1 min)",
        ("tests/chaos/experiment/hosts/test_collect.py", "tests/chaos/checks/test_blind.py"),
    ),
    Nightly(
        "tests/hosts/test_clocks.py::test_a_run_on_these_hosts_is_valid_and_its_times_are_on_one_axis",
        "a run on them is VALID (40 s)",
        ("tests/chaos/experiment/hosts/test_clocks.py", "tests/chaos/history/test_one_axis.py"),
    ),
    Nightly(
        "tests/hosts/test_bad_input.py::test_an_experiment_on_odd_hosts_ends_with_one_sentence_before_a_node_starts",
        "heads, tokens, versions and hosts that are wrong, on three hosts (2 min)",
        ("tests/actors/test_joined_ray.py", "tests/actors/test_host_agent.py"),
    ),
    Nightly(
        "tests/hosts/test_readme_lines.py::test_the_five_lines_give_a_verdict_on_three_hosts",
        "docs/hosts.md's five lines for more than one machine, on three hosts (1 min)",
        (f"{_RECIPES}::test_every_command_is_one_that_the_program_takes",),
    ),
    *(
        Nightly(f"tests/hosts/test_ways.py::{test}", f"three hosts: {says} ({minutes})", (_CUT_BETWEEN_HOSTS, instead))
        for test, says, minutes, instead in (
            ("test_rays_own_tls_and_token_are_enough", "Ray over TLS", "1 min 30 s", "tests/actors/test_joined_ray.py"),
            (
                "test_a_ray_job_runs_a_scenario_and_is_as_good_as_its_verdict",
                "`ray job submit`, as KubeRay does it",
                "1 min 30 s",
                _RECIPES,
            ),
            (
                "test_a_history_is_judged_on_a_spark_cluster_of_the_hosts",
                "a history judged on a Spark cluster of these hosts",
                "2 min",
                _RECIPES,
            ),
            (
                "test_apaches_programs_are_nodes_on_the_hosts_too",
                "Apache's programs as nodes",
                "2 min",
                "tests/chaos/scenarios/test_implementations.py",
            ),
        )
    ),
    *(
        Nightly(f"{_HOSTS}::{test}", f"three hosts: {says}", (_CUT_BETWEEN_HOSTS, "tests/actors/test_host_agent.py"))
        for test, says in (
            ("test_a_host_is_lost_and_another_paused_and_both_come_back", "one lost, one paused, both back"),
            ("test_two_experiments_at_once_on_one_ray_cluster", "two experiments at once"),
            ("test_of_a_driver_that_is_killed_nothing_is_left_on_any_host", "the driver killed"),
            ("test_a_raylet_that_is_killed_ends_the_run_with_the_name_of_its_host", "a raylet killed"),
            ("test_a_host_that_joins_late_has_no_part_in_this_run_but_in_the_next", "a host that joins late"),
            ("test_when_rays_head_is_gone_the_run_says_so_and_nothing_is_left", "Ray's head gone"),
            ("test_a_host_that_a_scenario_names_and_the_cluster_has_not_is_refused", "a host that there is not"),
            (
                "test_on_a_host_whose_network_is_gone_nothing_is_left_and_the_run_ends_with_its_name",
                "a host whose network is gone",
            ),
            ("test_a_cluster_stays_up_on_three_hosts_and_sees_what_others_do_to_it", "`nemesrv up`"),
        )
    ),
    Nightly(
        "tests/chaos/history/test_random_hosts.py::test_nothing_is_invalid_for_the_clocks_of_three_hosts",
        "random runs as three hosts would have recorded them, their clocks wrong in eight ways (1 min)",
        ("tests/chaos/history/test_one_axis.py", "tests/chaos/checks/test_blind.py"),
    ),
    Nightly(
        f"{_TOOLS}::test_kubeconform_takes_every_manifest_by_kubernetes_and_kuberays_schemas",
        "manifests by the schemas of Kubernetes and KubeRay, which are installed for it",
        (_RECIPES,),
    ),
    Nightly(
        f"{_TOOLS}::test_hadolint_finds_no_fault_with_the_images",
        "Dockerfiles by hadolint, which is installed for it",
        (_RECIPES,),
    ),
    Nightly(
        f"{_TOOLS}::test_composes_own_schema_takes_the_three_hosts",
        "the compose file by its own schema, which is installed for it",
        (_RECIPES,),
    ),
)
