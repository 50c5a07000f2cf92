"""What runs nightly only (`make test-all`), and what stands for it in every `make test`.

conftest.py marks these tests; `make docs` writes the table in CONTRIBUTING.md from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

COLLECTED = pytest.StashKey[dict[str, bool]]()
"""Of pytest's configuration: the id of each test that was collected, before -m chose among them, to whether it is
nightly (conftest.py)."""


@dataclass(frozen=True, slots=True)
class Nightly:
    """A test that is nightly, but for the parameters that run every time; and the tests that stand for the rest."""

    test: str
    says: str
    instead: tuple[str, ...]
    every_time: tuple[str, ...] = ()
    """Ids of parameters, as pytest shows them in brackets."""


_EDGES = "tests/chaos/oracle/test_window_edges.py"
_VIRTUAL = "tests/chaos/experiment/virtual"
_KNOWN = "tests/chaos/generate/test_known_verdicts.py"
_PAGES = "tests/chaos/checkers/dataframes/test_plain_pages.py"
_END_TO_END = "tests/chaos/test_end_to_end.py"
_SELFTEST = "tests/chaos/test_selftest.py"
_STOPPING = "tests/chaos/test_stopping.py"
_CLIENTS = "tests/clients_matrix/test_drivers.py::test_a_client_sends_and_receives_and_ends_at_sigterm"
_FINDINGS, _SABOTAGE = "tests/clients_matrix/test_findings.py", "tests/chaos/conform/test_sabotage.py"
_APACHE = "tests/apache_matrix/test_runs.py"
_DRILLS = "tests/drills/test_drills.py::test_a_drill_on_our_nodes_gives_the_fields_intervals"
_MUSEUM = "tests/chaos/museum/test_incidents.py"
_INFERENCE = "tests/chaos/incident/test_inference.py::test_what_was_done"
_INCIDENTS = f"{_MUSEUM}::test_what_was_reported_happens_and_is_found_and_with_its_fix_does_not"
_PROOF = "tests/chaos/incident/test_proof.py"
_BENCH = "tests/chaos/bench/test_namesrv_bench.py"
_ADMIN, _ADMIN_COMMANDS = "tests/interop/test_mqadmin.py", "tests/chaos/commands/test_admin.py"
_SHIPPED = f"{_VIRTUAL}/test_runs.py::test_a_shipped_scenario_is_valid"
_HEALTHY = "tests/chaos/spark/test_judge.py::test_a_healthy_run_of_real_size_passes_every_check"
_RANDOM = f"{_VIRTUAL}/test_random_scenarios.py::test_no_check_says_invalid_of_a_random_scenario"
_PARTITION = f"{_END_TO_END}::test_a_partition_run_leaves_a_folder_whose_verdict_is_valid_and_can_be_judged_again"
_UP = (
    "tests/chaos/live/test_up_alone.py"
    "::test_a_node_that_somebody_kills_is_said_at_once_and_recorded_once_and_up_goes_on"
)
_TUTORIAL = "tests/test_tutorial.py::test_a_page_of_the_tutorial_does_what_it_says"
_OPEN_FILES = "tests/chaos/test_preflight.py::test_too_few_open_files_are_told_in_the_first_second_by_every_command"
_DEFECT = f"{_SELFTEST}::test_planted_defects_are_killed_and_their_clean_twin_is_clean"
_LINKS = "tests/chaos/reports/test_links.py::test_every_link_leads_to_a_lane_and_a_time_that_contain_the_event"
_HAND_WRITTEN = "tests/chaos/checkers/test_order_kept.py"

_TOOLS, _RECIPES = "tests/deploy/test_tools.py", "tests/deploy/test_recipes.py"
_HOSTS = "tests/hosts/test_hosts.py"
_CUT_BETWEEN_HOSTS = f"{_HOSTS}::test_a_partition_between_hosts_is_judged_as_one_within_one"
_BY_HAND = f"{_VIRTUAL}/test_acts_by_hand.py::test_what_is_not_done_as_asked_is_found"
_SHAPES = f"{_VIRTUAL}/test_shaped_partitions.py::test_links_meet_what_the_shape_says_and_every_table_is_true"

_JAVA = "tests/chaos/apache/test_java_clients.py"
_JAVA_IS_JUDGED = f"{_JAVA}::test_javas_clients_at_right_servers_are_judged_and_nothing_is_wrong"

NIGHTLY = (
    Nightly(
        _JAVA_IS_JUDGED,
        "Apache's clients 4.9.8 at our servers",
        (_JAVA_IS_JUDGED, "tests/chaos/apache/test_told.py"),
        ("apache-5.3.3",),
    ),
    Nightly(
        f"{_JAVA}::test_a_wrong_broker_is_convicted_with_javas_clients",
        "wrong brokers of ours under Apache's client 5.3.3",
        (_JAVA_IS_JUDGED, _DEFECT),
    ),
    Nightly(
        f"{_JAVA}::test_javas_clients_that_broadcast_are_each_given_every_message",
        "Apache's clients that broadcast",
        (_JAVA_IS_JUDGED, "tests/chaos/apache/test_told.py"),
    ),
    Nightly(
        f"{_JAVA}::test_a_call_under_way_as_its_server_closes_waits_for_its_time_out_in_4_9_alone",
        "what Apache's clients do as their broker closes the connection under a send",
        (
            "tests/chaos/checkers/test_recovery_time.py"
            "::test_apaches_client_4_9_waits_out_the_send_that_is_under_way_as_its_broker_closes",
        ),
    ),
    Nightly(
        f"{_JAVA}::test_an_ordered_workload_of_javas_clients_is_judged_at_the_receipts_too",
        "an ordered workload of Apache's clients",
        (_JAVA_IS_JUDGED, "tests/chaos/apache/test_told.py"),
    ),
    Nightly(
        "tests/chaos/bench/test_collecting_bench.py"
        "::test_what_three_hosts_recorded_is_collected_in_two_ways_and_both_are_timed",
        "`nemesrv bench collect` over a Ray cluster of three nodes (15 s)",
        ("tests/chaos/hosts/test_collect.py",),
    ),
    Nightly(
        "tests/chaos/spark/test_hadoop_files.py::test_a_history_is_written_to_hdfs_and_read_from_there",
        "a NameNode and a DataNode of Hadoop's own, by Maven: a history written there and read again (20 s)",
        ("tests/chaos/spark/test_hadoop_files.py::test_what_hadoop_writes_is_in_place_of_what_was",),
    ),
    Nightly(
        "tests/hosts/test_clocks.py::test_the_offset_of_a_host_is_within_its_bound_of_the_truth",
        "what is measured of three hosts, one of whose clocks is 700 ms ahead",
        ("tests/chaos/hosts/test_clocks.py", "tests/chaos/history/test_host_clocks.py"),
    ),
    Nightly(
        "tests/hosts/test_lost_rows.py"
        "::test_the_history_of_a_run_that_lost_a_host_is_judged_without_that_host_s_last_rows",
        "a host of three is gone in mid-run; what was collected is judged, and what is missing is said (1 min)",
        ("tests/chaos/hosts/test_collect.py", "tests/chaos/checkers/test_blind.py"),
    ),
    Nightly(
        "tests/hosts/test_packet_loss.py::test_each_host_loses_the_packets_of_its_own_links_until_the_heal",
        "a run on two hosts whose kernels lose the packets of three links (1 min 30 s)",
        ("tests/chaos/faults/test_packet_drop.py",),
    ),
    Nightly(
        "tests/hosts/test_clocks.py::test_a_run_on_these_hosts_is_valid_and_its_times_are_on_one_axis",
        "a run on them is VALID (40 s)",
        ("tests/chaos/hosts/test_clocks.py", "tests/chaos/history/test_one_axis.py"),
    ),
    Nightly(
        "tests/hosts/test_bad_input.py::test_an_experiment_on_odd_hosts_ends_with_one_sentence_before_a_node_starts",
        "heads, tokens, versions and hosts that are wrong, on three hosts (2 min)",
        ("tests/actors/test_joined_ray.py", "tests/actors/test_host_agent.py"),
    ),
    Nightly(
        "tests/hosts/test_readme_lines.py::test_the_five_lines_give_a_verdict_on_three_hosts",
        "README's five lines for more than one machine, on three hosts (1 min)",
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
        ("tests/chaos/history/test_one_axis.py", "tests/chaos/checkers/test_blind.py"),
    ),
    Nightly(
        "tests/chaos/conform/test_command.py::test_our_own_client_does_all_that_its_profile_says",
        "`nemesrv conform` with our own client in every situation, in real time (3 min 30 s)",
        (
            "tests/chaos/conform/test_command.py",
            "tests/chaos/conform/test_run.py",
            "tests/chaos/conform/test_sabotage.py",
        ),
    ),
    Nightly(
        _BY_HAND,
        "more defects of acts by hand and of clocks",
        (_BY_HAND, "tests/chaos/checkers/test_done_by_hand.py"),
        ("name-server-takes-out-nobody",),
    ),
    Nightly(
        _SHAPES,
        "more partitions by name, recorded",
        (_SHAPES, "tests/chaos/test_shapes.py"),
        ("ring", "split_list", "out_of"),
    ),
    Nightly(
        f"{_EDGES}::test_just_inside_is_valid_and_just_outside_is_invalid",
        "more edges of the windows, each from both sides",
        (
            f"{_EDGES}::test_just_inside_is_valid_and_just_outside_is_invalid",
            "tests/chaos/checkers/test_timed_waits.py",
        ),
        ("silent-4.9-latest", "producer-leaves-a-crash"),
    ),
    Nightly(
        f"{_EDGES}::test_a_timer_is_found_that_is_2_percent_off",
        "more timers that are 2 % too long or too short",
        (f"{_EDGES}::test_a_timer_is_found_that_is_2_percent_off", "tests/chaos/checkers/test_timers_kept.py"),
        ("R: registration-longer", "T: send with all its tries-shorter"),
    ),
    Nightly(
        f"{_BENCH}::test_apaches_name_server_is_measured_beside_ours",
        "the benchmark with Apache's NameServers beside ours",
        (
            f"{_BENCH}::test_everything_is_measured_and_every_aim_judged",
            f"{_BENCH}::test_the_best_value_counts_and_a_ratio_is_to_the_best_of_the_others",
        ),
    ),
    Nightly(
        f"{_SELFTEST}::test_spark_judges_a_defect_and_its_twin_as_plain_python_does_and_contradicts_no_figure",
        "every planted defect and clean twin, judged by Spark",
        (_DEFECT, _HAND_WRITTEN),
    ),
    Nightly(
        "tests/chaos/checkers/test_by_spark_too.py::test_spark_comes_to_the_same_in_every_history_that_is_told_here",
        "hand-written histories that are judged plainly, judged by Spark",
        (_HAND_WRITTEN, "tests/chaos/checkers/test_duplicates.py", "tests/chaos/checkers/test_exercised.py"),
    ),
    Nightly(
        f"{_BENCH}::test_everything_is_measured_and_every_aim_judged",
        "the benchmark where there is no C compiler",
        (
            f"{_BENCH}::test_everything_is_measured_and_every_aim_judged",
            f"{_BENCH}::test_an_answer_with_other_bytes_is_counted",
            f"{_BENCH}::test_a_paced_load_sends_so_many_and_frames_in_turn",
        ),
        ("True",),
    ),
    Nightly(
        "tests/chaos/bench/test_fronts_bench.py::test_a_front_is_measured_beside_toxiproxy_and_nothing_and_judged",
        "`nemesrv bench fronts`",
        ("tests/chaos/fronts", "tests/chaos/bench"),
    ),
    Nightly(
        "tests/chaos/bench/test_logs_bench.py::test_each_reader_has_its_figure_and_sparks_is_judged",
        "`nemesrv bench logs`",
        ("tests/chaos/bench/test_logs_bench.py::test_the_logs_have_what_such_logs_are_full_of",),
    ),
    Nightly(
        "tests/chaos/test_pytest_plugin.py::test_with_xdist_a_wrong_marker_is_its_tests_own_error",
        "a wrong marker where pytest-xdist spreads the tests",
        ("tests/chaos/test_pytest_plugin.py::test_a_wrong_marker_is_a_line_at_collection_and_nothing_is_started",),
    ),
    Nightly(
        "tests/chaos/conform/test_sabotage_over_tcp.py"
        "::test_programs_with_a_defect_are_invalid_by_its_rule_alone_and_the_twin_is_valid",
        "sabotaged client programs and their twin under `nemesrv conform`, in real time",
        ("tests/chaos/conform/test_sabotage.py", "tests/chaos/conform/test_command.py"),
    ),
    *(
        Nightly(
            f"tests/chaos/live/test_clients_under_test.py::{test}",
            f"a client under test in `up`: {says}",
            ("tests/chaos/live/test_clients_under_test.py::test_wrong_clients_are_one_line", _UP),
        )
        for test, says in (
            ("test_a_client_that_is_bin_false_makes_its_checks_unknown", "one that does nothing"),
            ("test_a_program_is_judged_by_its_profile_without_a_line_in_it", "judged by its profile"),
        )
    ),
    Nightly(
        "tests/chaos/test_plugin_with_clients.py::"
        "test_a_client_under_test_is_judged_and_one_that_is_bin_false_cannot_pass",
        "the pytest plugin's clients under test: Go's, and one that does nothing",
        ("tests/chaos/live/test_clients_under_test.py::test_wrong_clients_are_one_line", _UP),
    ),
    Nightly(
        "tests/clients_matrix/test_as_without_a_proxy.py"
        "::test_clients_meet_behind_toxiproxy_what_they_meet_on_a_direct_connection",
        "clients of other makes behind Toxiproxy and on a direct connection",
        (_CLIENTS, "tests/chaos/faults"),
    ),
    Nightly(
        _LINKS,
        "the links of the planted defects of all checks but three",
        (_LINKS,),
        ("answers_asked_for", "no_false_eviction", "routes_converge"),
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
    Nightly(
        _OPEN_FILES,
        "a machine that allows yet fewer open files",
        (_OPEN_FILES,),
        ("256",),
    ),
    Nightly(
        "tests/chaos/live/test_up.py"
        "::test_what_others_and_the_command_do_to_a_cluster_is_in_its_record_and_its_end_is_the_verdicts",
        "Toxiproxy's API, signals and `nemesrv fault` against a cluster of `up --check`",
        (_UP, "tests/chaos/live"),
    ),
    Nightly(
        f"{_END_TO_END}::test_up_announces_addresses_that_a_client_can_dial_and_ends_on_ctrl_c",
        "a cluster that stays up, with Spark at hand",
        (_UP,),
    ),
    Nightly(
        f"{_INFERENCE}_is_named_first_and_nothing_wrong_is_certain",
        "recorded incidents of 26 kinds, told by what logs would have of them",
        (f"{_INFERENCE}_is_named_first_and_nothing_wrong_is_certain", "tests/chaos/incident/test_episodes.py"),
        ("broker killed",),
    ),
    Nightly(
        "tests/chaos/incident/test_inference.py::test_without_one_servers_log_nothing_wrong_is_certain",
        "the same without one server's log",
        ("tests/chaos/incident/test_episodes.py",),
    ),
    Nightly(_RANDOM, "more random scenarios on the virtual clock", (_RANDOM,), ("1",)),
    Nightly(f"{_RANDOM}_that_spark_has_read", "random scenarios, judged in Spark", (_RANDOM, _SHIPPED)),
    Nightly(
        _SHIPPED,
        "every shipped scenario on the virtual clock",
        (_SHIPPED, _PARTITION, _DEFECT, _RANDOM),
        ("broker-crash-4.9", "name-server-crash-5.x"),
    ),
    Nightly(
        f"{_VIRTUAL}/test_runs.py::test_spark_says_valid_of_a_shipped_scenario",
        "every shipped scenario on the virtual clock, judged by Spark",
        (_SHIPPED, _PARTITION, _HEALTHY),
    ),
    Nightly(
        "tests/chaos/test_plain_judging.py::test_a_check_says_the_same_without_spark",
        "random scenarios, judged by Spark and without it",
        (_HAND_WRITTEN, _KNOWN, _HEALTHY),
    ),
    Nightly(
        f"{_KNOWN}::test_a_clean_history_of_any_size_is_valid_to_every_check",
        "clean generated histories of more sizes and seeds, through Spark",
        (_HEALTHY, f"{_KNOWN}::test_a_small_clean_history_is_valid_to_every_check"),
    ),
    Nightly(
        f"{_KNOWN}::test_no_check_finds_a_fault_in_a_random_history",
        "a generated history with random faults",
        (_RANDOM, _HEALTHY),
    ),
    Nightly(
        f"{_KNOWN}::test_a_planted_defect_is_found_by_its_checks",
        "every defect of the history generator, through Spark",
        (f"{_KNOWN}::test_a_planted_defect_is_found_by_its_checks_without_spark", _HEALTHY, "tests/chaos/checkers"),
        ("stale_route", "lost_message"),
    ),
    Nightly(
        f"{_PAGES}::test_a_history_read_by_pages_gets_the_verdicts_of_one_read_by_messages",
        "generated histories with each defect of messages, read by pages",
        (
            f"{_KNOWN}::test_a_history_planned_as_a_large_one_gets_the_same_verdicts",
            f"{_PAGES}::test_one_message_that_is_not_plain_makes_its_page_looked_into",
            f"{_PAGES}::test_a_page_is_plain_when_its_three_sets_are_one",
        ),
    ),
    Nightly(
        f"{_PAGES}::test_one_message_that_is_not_plain_makes_its_page_looked_into",
        "every way in which a message is not plain",
        (
            f"{_PAGES}::test_one_message_that_is_not_plain_makes_its_page_looked_into",
            f"{_PAGES}::test_a_page_is_plain_when_its_three_sets_are_one",
        ),
        ("read as another",),
    ),
    Nightly(
        f"{_END_TO_END}::test_a_planted_defect_is_caught_by_its_checks_and_its_clean_twin_by_none",
        "a planted defect on the machine's own clock",
        (_DEFECT, _PARTITION),
    ),
    Nightly(
        f"{_END_TO_END}::test_an_interrupted_run_leaves_nothing_running_and_a_history_that_can_be_judged",
        "a run that Ctrl-C interrupts, judged",
        (
            f"{_END_TO_END}::test_an_interrupted_run_leaves_nothing_running_and_a_history_that_can_be_judged",
            f"{_STOPPING}::test_while_ray_starts",
        ),
        ("SIGTERM",),
    ),
    Nightly(
        f"{_STOPPING}::test_at_twenty_random_moments",
        "a run stopped at twice twenty random moments",
        (f"{_STOPPING}::test_in_its_first_moments", f"{_STOPPING}::test_while_ray_starts"),
    ),
    Nightly(
        "tests/chaos/live/test_differential.py::test_parts_come_to_the_verdict_of_the_whole",
        "random histories judged whole and in parts (`make live-differential` does 1,000)",
        ("tests/chaos/live/test_carry.py", "tests/chaos/live/test_stream.py", "tests/chaos/checkers"),
    ),
    Nightly(
        "tests/packaging/test_example_project.py"
        "::test_the_example_passes_on_both_clocks_and_a_test_that_must_fail_says_how_to_replay_it",
        "the example project with the wheel in an environment of its own, on both clocks",
        ("tests/chaos/test_pytest_plugin.py", "tests/packaging/test_wheel.py", _TUTORIAL),
    ),
    Nightly(
        _TUTORIAL,
        "the pages of the tutorial that start Ray",
        (_TUTORIAL, _PARTITION, _UP),
        (
            "1-first-experiment",
            "2-your-scenario",
            "4-your-tests",
            "5-ci",
        ),
    ),
    Nightly(
        "tests/interop/test_log_lines.py::test_what_happens_is_logged_in_apaches_words",
        "the log of Apache's NameServer 5.3 beside ours",
        (
            "tests/interop/test_log_lines.py::test_what_happens_is_logged_in_apaches_words",
            "tests/actors/namesrv/test_log_lines.py",
        ),
        ("4.9",),
    ),
    Nightly(
        "tests/interop/test_cluster_test.py::test_both_give_the_routes_of_production_and_their_own",
        "Apache's NameServer 5.3 in `clusterTest` beside ours",
        (
            "tests/interop/test_cluster_test.py::test_both_give_the_routes_of_production_and_their_own",
            "tests/actors/namesrv/test_product_environment.py",
        ),
        ("4.9",),
    ),
    Nightly(
        _INCIDENTS,
        "those of the worked incidents that are not about topics, members of groups and permissions",
        (f"{_MUSEUM}::test_every_incident_has_an_outcome", _INCIDENTS),
        ("i07-topic-before-the-first-tick", "i20-members-counted-twice", "i23-permission-comes-back"),
    ),
    Nightly(
        f"{_PROOF}::test_a_hundred_incidents_of_ten_kinds_are_found",
        "what is found again in the logs of a hundred incidents, with wrong clocks, and cut and edited too",
        (f"{_PROOF}::test_a_crash_and_a_pair_partition_are_found_in_logs_with_wrong_clocks",),
    ),
    Nightly(
        f"{_APACHE}::test_a_shipped_scenario_is_valid_on_apaches_servers",
        "smoke and a crash on Apache's servers of both versions (`make apache` runs all there are)",
        (f"{_APACHE}::test_a_crash_among_servers_of_both_versions_is_judged", "tests/apache_matrix/test_table.py"),
    ),
    Nightly(
        f"{_APACHE}::test_what_brokers_of_a_role_do_is_valid",
        "groups with an elected master (DLedger, controller), and a SYNC_MASTER without its slave",
        ("tests/chaos/checkers/test_one_master.py", "tests/chaos/scenarios/test_elections.py"),
    ),
    Nightly(
        f"{_APACHE}::test_servers_are_upgraded_one_by_one_under_load_and_clients_after_them",
        "Apache's servers from 4.9.7 to 5.3.3, one by one, and its clients from 4.9.8 to 5.3.3 beside each other",
        (
            f"{_APACHE}::test_a_crash_among_servers_of_both_versions_is_judged",
            "tests/chaos/scenarios/test_upgrades.py",
        ),
    ),
    Nightly(
        _DRILLS,
        "the field drills (`python -m tests.drills` measures all with ten seeds)",
        ("tests/drills/test_drills.py::test_what_was_measured_here_is_inside_too", _SHIPPED),
    ),
    Nightly(
        _CLIENTS,
        "the clients of the other registries",
        (_CLIENTS,),
        ("java-4.9.8", "node-3.12.0", "ours-4.9"),
    ),
    Nightly(
        "tests/clients_matrix/test_twice.py::test_two_runs_of_a_client_agree",
        "two whole profiles of Java 4.9.8 (`python -m tests.clients_matrix --twice CLIENT`)",
        ("tests/clients_matrix/test_twice.py", "tests/chaos/conform/test_sabotage.py"),
    ),
    Nightly(
        f"{_FINDINGS}::test_7056_is_red_on_java_4_9_8_and_green_on_5_3_3_within_a_minute",
        "apache/rocketmq#7056 found by `nemesrv conform` in Java 4.9.8, and not in 5.3.3 (40 s each)",
        (f"{_FINDINGS}::test_javas_client_says_its_language_and_version_and_each_start_is_seen", _SABOTAGE),
    ),
    Nightly(
        f"{_FINDINGS}::test_the_phase_lock_of_ali_ons_is_one_look_up_in_n_minus_one",
        "the phase lock found by `nemesrv conform` in Node's `ali-ons` (2 min 15 s)",
        (f"{_FINDINGS}::test_ali_ons_begins_at_the_second_name_server", _SABOTAGE),
    ),
    Nightly(
        "tests/clients_matrix/test_hour.py::test_our_clients_side_by_side_have_no_errors",
        "a client sends, receives, rebalances and leaves (`make client-hour`: for an hour)",
        ("tests/clients_matrix/test_hour.py::test_what_was_said_is_counted", _CLIENTS),
    ),
    *(
        Nightly(f"{_ADMIN}::{test}", f"mqadmin 5.3: {says}", (f"{_ADMIN}::{test}", _ADMIN_COMMANDS), ("4.9",))
        for test, says in (
            ("test_a_topic_is_created_changed_and_deleted", "topics"),
            ("test_a_message_is_found_by_id_by_key_and_by_queue_offset", "messages"),
            ("test_the_connections_of_clients_are_shown", "connections"),
            ("test_the_brokers_settings_are_shown_and_changed", "settings"),
            ("test_a_consumer_says_of_itself_what_it_does", "a consumer's state"),
            ("test_a_consume_queue_is_shown", "consume queues"),
            ("test_every_producer_of_a_broker_is_shown", "producers"),
            ("test_the_progress_of_every_group_is_shown", "the progress of every group"),
            ("test_a_broker_tidies_up", "tidying up"),
        )
    ),
    Nightly(
        "tests/interop/test_apache_tests.py::test_all_of_apaches_tests_pass",
        "all of Apache's integration tests that can be run here (`make apache-tests` prints a table of them)",
        ("tests/interop/test_apache_tests.py::test_a_few_of_apaches_tests_pass",),
    ),
    Nightly(
        "tests/chaos/defects/test_apache.py::test_it_is_found_on_the_real_thing_and_its_clean_twin_is_not",
        "defects put into Apache's servers from outside, and their clean twins",
        ("tests/chaos/defects/test_apache.py::test_one_is_refused_where_its_node_is_ours",),
    ),
    Nightly(
        "tests/interop/test_apache_tests.py::test_a_few_of_apaches_tests_pass_while_links_fail",
        "a few of Apache's integration tests while links fail (`python -m tests.apache --chaos SEED`)",
        ("tests/interop/test_apache_tests.py::test_a_few_of_apaches_tests_pass", "tests/chaos/fronts/test_front.py"),
    ),
    Nightly(
        f"{_ADMIN}::test_a_group_goes_on_where_an_operator_sends_it",
        "a reset of offsets that Java's clients obey, after 10 s in 4.9",
        ("tests/actors/broker/test_consumer_calls.py",),
    ),
    Nightly(
        f"{_VIRTUAL}/test_odd_scenarios.py::test_it_is_no_alarm_with_other_phases",
        "the odd scenarios with the phases of another seed",
        (f"{_VIRTUAL}/test_odd_scenarios.py::test_it_is_no_alarm", _RANDOM),
    ),
    Nightly(
        "tests/chaos/predict/test_runs.py::test_model_and_runs_differ_by_no_more_than_chance",
        "the window model of `nemesrv predict` beside 12 virtual runs of every fault that it names",
        (
            "tests/chaos/predict/test_runs.py::test_a_run_with_fixed_phases_recovers_when_they_say",
            "tests/chaos/predict/test_field_drills.py",
        ),
    ),
)


def is_nightly(node_id: str) -> bool:
    """Whether the test with pytest's id runs nightly only."""
    test, _, parameters = node_id.partition("[")
    return any(one.test == test and parameters.rstrip("]") not in one.every_time for one in NIGHTLY)


def table() -> str:
    """CONTRIBUTING.md's table."""
    rows = ["| nightly | every time instead |", "|---|---|"]
    for one in NIGHTLY:
        instead = [_named(test, one.every_time if test == one.test else ()) for test in one.instead]
        rows.append(f"| {one.says}: {_named(one.test)} | {'; '.join(instead)} |")
    return "\n".join(rows)


def _named(test: str, parameters: tuple[str, ...] = ()) -> str:
    """The test as a link to its file; of one with parameters, those that run."""
    file, _, name = test.partition("::")
    shown = f"[`{name or file.removeprefix('tests/')}`]({file})"
    return f"{shown} of {', '.join(f'`{each}`' for each in parameters)}" if parameters else shown
