"""What runs nightly only because a cheaper test of every time shows the same rule in another way.

At another size, seed, profile or moment; by a history that is told, not recorded; or without Spark.
"""

from .record import BENCH, DEFECT, NODE_OF_APACHES, UP, Nightly

_VIRTUAL = "tests/chaos/experiment/virtual"
_END_TO_END = "tests/chaos/test_end_to_end.py"
_STOPPING = "tests/chaos/test_stopping.py"
_RUNS = f"{_VIRTUAL}/test_runs.py"
_SLAVES = f"{_VIRTUAL}/test_slaves.py"
_PAGE = "tests/chaos/reports/test_page_in_browser.py"
_INTEROP = "tests/interop"
_SLAVE = (
    f"{_INTEROP}/test_slave.py::test_a_consumer_that_starts_after_the_masters_death_reads_everything_from_the_slave"
)
_REGISTERS = f"{_INTEROP}/test_name_server.py::test_a_java_broker_registers_with_ours_and_is_dropped_when_killed"
_LOST = "tests/differential/test_found.py::test_a_lost_channel_takes_one_broker_and_a_reset_one_two"
_INTERRUPTED = f"{_END_TO_END}::test_an_interrupted_run_leaves_nothing_running_and_a_history_that_can_be_judged"
_SABOTAGE = "tests/conformance/test_sabotage.py"
_WINDOWS = "tests/chaos/oracle/test_window_edges.py"
_FRAMES = "tests/fuzz/test_fuzz.py::test_a_frame_made_to_be_expensive_is_bounded"
_LEGEND = f"{_PAGE}::test_a_legend_of_many_entries_has_rows_and_is_no_wider_than_its_plot"
_TEXTS = f"{_PAGE}::test_no_two_texts_of_a_row_lie_over_each_other_at_any_zoom"
_NAMED = f"{_SLAVES}::test_a_slave_is_named_and_read_while_its_master_is_gone_and_nothing_is_wrong"
_MADE_MASTER = f"{_SLAVES}::test_a_slave_that_is_made_master_is_told_and_sent_to"
_SERIES = f"{_VIRTUAL}/test_series_of_actions.py"
_JOINS = (
    "tests/chaos/scenarios/test_membership.py"
    "::test_a_name_server_that_joins_fills_within_a_registration_and_one_that_is_removed_stays_away"
)
_HELP = "tests/packaging/test_extras.py::test_without_extras_there_is_help"
_CONFORM_ENDS = "tests/conformance/test_command.py::test_a_signal_ends_it_at_once_with_nothing_left"
_REPLAYED = (
    "tests/operations/replay/test_replay.py"
    "::test_the_command_says_how_alike_they_are_and_its_exit_status_whether_it_happens_again"
)

NIGHTLY = (
    Nightly(
        f"{_END_TO_END}::test_a_partition_run_as_shipped_is_valid_and_can_be_judged_again",
        "`broker-partition` with eleven nodes on the machine's own clock, judged by all its checks, twice",
        (
            f"{_END_TO_END}::test_a_partition_run_leaves_a_folder_whose_verdict_is_valid",
            "tests/chaos/test_judging.py"
            "::test_the_same_history_gets_the_same_verdict_with_its_scenario_and_as_mere_files",
        ),
    ),
    Nightly(
        f"{_STOPPING}::test_while_ray_starts",
        "one signal while Ray starts",
        (f"{_STOPPING}::test_a_second_signal_ends_it_at_once_while_ray_starts",),
    ),
    Nightly(
        "tests/apache_matrix/test_runs.py::test_a_crash_among_servers_of_both_versions_is_judged",
        "a crash among Apache's servers of both versions, judged",
        (NODE_OF_APACHES, "tests/chaos/apache/test_server_rows.py", "tests/apache_matrix/test_table.py"),
    ),
    Nightly(
        f"{_END_TO_END}::test_a_node_that_dies_unplanned_ends_the_run_at_once_as_a_harness_failure",
        "a node that dies unplanned in a run",
        (UP, "tests/actors/test_cluster.py::test_a_node_that_dies_wakes_whoever_waits_and_a_planned_end_does_not"),
    ),
    Nightly(
        f"{_STOPPING}::test_in_its_first_moments",
        "a run stopped in its first two seconds",
        (f"{_STOPPING}::test_a_second_signal_ends_it_at_once_while_ray_starts", _INTERRUPTED),
    ),
    Nightly(
        "tests/actors/test_what_is_left.py::test_nothing_survives_a_harness_that_is_killed_while_it_starts",
        "a harness killed while one, three and five of its processes are there",
        ("tests/actors/test_what_is_left.py::test_nothing_survives_a_harness_that_is_killed",),
    ),
    Nightly(
        "tests/actors/test_what_is_left.py::test_a_harness_prints_nothing_of_rays_and_leaves_nothing",
        "what a harness prints and leaves",
        (
            "tests/actors/test_what_is_left.py::test_nothing_survives_a_harness_that_is_killed",
            f"{_END_TO_END}::test_a_partition_run_leaves_a_folder_whose_verdict_is_valid",
        ),
    ),
    Nightly(
        "tests/actors/test_cluster.py::test_ray_has_no_process_that_nobody_needs",
        "which processes Ray has",
        ("tests/actors/test_cluster.py::test_each_node_has_its_own_process_on_uvloop",),
    ),
    Nightly(
        f"{_INTEROP}/test_name_server.py::test_a_java_broker_is_in_the_cluster_list_of_ours_as_of_apaches",
        "the cluster list with Apache's broker in it",
        (_REGISTERS, f"{_INTEROP}/test_mqadmin.py", "tests/differential/test_operations.py"),
    ),
    Nightly(
        "tests/clients_matrix/test_findings.py::test_ali_ons_begins_at_the_second_name_server",
        "where Node's `ali-ons` begins",
        ("tests/clients_matrix/test_drivers.py::test_a_client_sends_and_receives_and_ends_at_sigterm", _SABOTAGE),
    ),
    Nightly(
        "tests/packaging/test_example_project.py::test_a_misspelt_marker_is_a_line_before_any_test_and_a_usage_error",
        "a misspelt marker in the example project",
        ("tests/chaos/test_pytest_plugin.py::test_a_wrong_marker_is_a_line_at_collection_and_nothing_is_started",),
    ),
    Nightly(_SLAVE, "Apache's slave 4.9, read after its master's death", (_SLAVE,), ("5.x",)),
    Nightly(_REGISTERS, "Apache's broker 4.9, registered with our NameServer and killed", (_REGISTERS,), ("5.x",)),
    Nightly(
        _LOST,
        "channels that are closed, as Apache's NameServer 4.9 takes it",
        (_LOST,),
        ("5.x-False", "5.x-True", "4.9-True"),
    ),
    Nightly(
        "tests/chaos/checks/spark/test_class_archive.py::test_the_session_of_a_small_history_has_the_archive_that_set_up_made",
        "that a session has the archive of Spark's classes, which only `make setup` and `make test-all` make",
        ("tests/chaos/checks/spark/test_class_archive.py",),
    ),
    Nightly(
        f"{_PAGE}::test_a_link_with_a_place_in_it_opens_there",
        "a page that is opened by a link to a place in it",
        (
            f"{_PAGE}::test_the_link_of_an_example_zooms_there_and_marks_its_lane",
            f"{_PAGE}::test_the_events_in_view_follow_the_zoom_and_the_filter",
        ),
    ),
    Nightly(
        "tests/operations/replay/test_replay.py::test_what_a_fix_would_have_changed_is_said_client_by_client",
        "what a fix would have changed, of a replay",
        (_REPLAYED, "tests/operations/replay/test_picture.py", "tests/operations/replay"),
    ),
    Nightly(
        _FRAMES,
        "a body of references",
        (_FRAMES, "tests/fuzz/test_fuzz.py::test_nothing_but_the_documented_errors_escapes"),
        ("a header of numbers", "a zip bomb"),
    ),
    Nightly(
        f"{_VIRTUAL}/test_acting_master.py"
        "::test_a_broker_that_says_each_1_02_s_that_it_lives_and_not_each_second_is_found",
        "a broker that says it lives 2 % too seldom",
        (f"{_WINDOWS}::test_a_timer_is_found_that_is_2_percent_off", "tests/chaos/checks/service/test_timers_kept.py"),
    ),
    Nightly(
        f"{_VIRTUAL}/test_half_open.py::test_a_broker_that_keeps_its_dead_channel_is_found",
        "a broker that keeps its dead channel",
        (
            f"{_VIRTUAL}/test_half_open.py::test_the_tables_keep_whoever_can_still_register",
            "tests/chaos/checks/service/test_timed_waits.py",
        ),
    ),
    Nightly(
        f"{_SLAVES}::test_a_consumer_that_never_asks_the_slave_is_found",
        "a consumer that never asks the slave",
        (_NAMED, "tests/chaos/checks/clients/test_living_are_used.py"),
    ),
    Nightly(
        f"{_VIRTUAL}/test_shaped_partitions.py::test_a_name_server_that_keeps_who_is_on_the_other_side_is_found",
        "a NameServer that keeps who is on the other side",
        (f"{_VIRTUAL}/test_shaped_partitions.py", "tests/chaos/checks/routes/test_routes_converge.py"),
    ),
    Nightly(
        "tests/chaos/reports/test_page.py::test_nothing_is_fetched",
        "that a page without a browser names nothing to fetch",
        ("tests/chaos/reports/test_page_in_browser.py",),
    ),
    Nightly(
        "tests/chaos/reports/test_intervals.py::test_the_oracle_needs_no_spark",
        "that the oracle imports no Spark, in a process",
        ("tests/chaos/test_installation.py",),
    ),
    Nightly(_LEGEND, "legends on wider screens", (_LEGEND,), ("390",)),
    Nightly(_TEXTS, "rows of texts on a wider screen", (_TEXTS,), ("390",)),
    Nightly(
        f"{_PAGE}::test_a_person_who_prefers_dark_gets_dark",
        "a page that is dark from the beginning",
        (f"{_PAGE}::test_the_switch_turns_the_page_and_the_plots_dark_and_back",),
    ),
    Nightly(
        "tests/operations/replay/test_picture.py::test_both_time_lines_are_drawn_and_fit_a_phone",
        "the page of a replay in a browser",
        (
            "tests/operations/replay/test_picture.py::test_the_page_says_how_alike_they_are_and_what_was_left_out",
            f"{_PAGE}::test_on_a_phone_nothing_is_wider_than_the_screen_and_each_check_is_a_card",
        ),
    ),
    Nightly(
        f"{BENCH}::test_without_java_its_rows_are_left_out_with_a_line_each",
        "the benchmark where there is no Java",
        (f"{BENCH}::test_everything_is_measured_and_every_aim_judged", "tests/chaos/test_preflight.py"),
    ),
    Nightly(
        "tests/bench/test_recorder_bench.py::test_a_machine_too_busy_to_answer_a_look_up_is_told_in_a_sentence",
        "`python -m tests.bench recorder` on a machine that is too busy",
        ("tests/bench/test_recorder_bench.py::test_events_a_second_and_the_cost_of_recording_are_measured_and_judged",),
    ),
    Nightly(f"{_RUNS}::test_another_seed_gives_another_history", "a history with another seed", (_RUNS,)),
    Nightly(
        "tests/operations/replay/test_replay.py::test_with_another_seed_it_happens_again",
        "a replay with another seed",
        (_REPLAYED,),
    ),
    Nightly(
        "tests/operations/importing/test_importing.py::test_the_same_logs_tell_the_same_each_time",
        "the same logs, imported twice",
        ("tests/operations/importing/test_importing.py",),
    ),
    Nightly(_NAMED, "a slave of profile 4.9 while its master is gone", (_NAMED,), ("5.x",)),
    Nightly(_MADE_MASTER, "a slave of profile 4.9 that is made master", (_MADE_MASTER,), ("5.x",)),
    Nightly(
        f"{_SLAVES}::test_a_slave_that_was_made_master_is_one_when_it_is_started_again",
        "one that was made master and is started again",
        (_MADE_MASTER, f"{_SLAVES}::test_one_that_is_a_slave_again_then_is_found"),
    ),
    Nightly(
        f"{_VIRTUAL}/test_half_open.py::test_who_is_started_again_while_syns_are_dropped_is_promised_to_nobody_until_the_heal",
        "a broker that starts while SYNs are dropped",
        (f"{_VIRTUAL}/test_half_open.py::test_the_tables_keep_whoever_can_still_register",),
    ),
    Nightly(
        f"{_SERIES}::test_a_name_server_that_loses_first_registrations_is_found_by_a_rolling_restart",
        "a NameServer that loses first registrations, found by a rolling restart",
        (f"{_SERIES}::test_every_turn_is_a_fault_of_its_own_and_nothing_is_wrong", DEFECT),
    ),
    Nightly(
        f"{_VIRTUAL}/test_client_processes.py"
        "::test_what_a_consumer_committed_ahead_of_its_work_is_lost_with_its_process_and_found",
        "a consumer that commits ahead of its work, recorded",
        (
            "tests/chaos/checks/messages/test_commits_follow_work.py",
            "tests/chaos/checks/messages/test_messages_delivered.py",
        ),
    ),
    Nightly(
        f"{_VIRTUAL}/test_heals.py::test_a_name_server_that_never_takes_a_healed_broker_back_is_found_at_the_first_heal",
        "a NameServer that never takes a healed broker back",
        (
            f"{_VIRTUAL}/test_heals.py::test_what_overlaps_ends_apart_and_every_link_is_as_it_should_be_in_between",
            "tests/chaos/checks/routes/test_routes_converge.py",
        ),
    ),
    Nightly(
        f"{_VIRTUAL}/test_shaped_partitions.py"
        "::test_a_producer_whose_name_server_names_only_the_broker_that_it_cannot_reach_may_fail",
        "a producer that is told only of a broker that it cannot reach",
        (f"{_VIRTUAL}/test_shaped_partitions.py", "tests/chaos/checks/service/test_recovery_time.py"),
    ),
    Nightly(
        f"{_VIRTUAL}/test_not_done.py::test_name_servers_too_slow_for_the_prober_end_no_run",
        "NameServers that are too slow for the prober",
        (f"{_VIRTUAL}/test_not_done.py",),
    ),
    Nightly(
        "tests/chaos/scenarios/test_lists.py"
        "::test_a_node_that_cannot_reach_the_address_server_may_keep_its_list_until_it_can",
        "a node that cannot reach the address server",
        ("tests/chaos/scenarios/test_lists.py::test_a_changed_list_is_in_use_within_its_time_and_all_follows",),
    ),
    Nightly(_JOINS, "a NameServer of 4.9 that joins", (_JOINS,), ("5.x",)),
    Nightly(
        "tests/chaos/experiment/test_rehearsal.py"
        "::test_a_name_server_that_never_expires_acts_only_where_a_broker_falls_silent",
        "where one more defect acts",
        ("tests/chaos/experiment/test_rehearsal.py",),
    ),
    Nightly(
        "tests/chaos/settings/test_config_of_a_scenario.py"
        "::test_clients_that_keep_silent_channels_are_not_asked_to_leave",
        "clients that keep silent channels, recorded",
        ("tests/chaos/settings/test_config_of_a_scenario.py", "tests/chaos/checks/service/test_timed_waits.py"),
    ),
    Nightly(
        "tests/fuzz/test_fuzz.py::test_nothing_else_escapes_with_twice_as_many_inputs",
        "twice as many wrong inputs",
        ("tests/fuzz/test_fuzz.py::test_nothing_but_the_documented_errors_escapes",),
    ),
    Nightly(
        "tests/conformance/test_command.py::test_without_a_profile_it_is_measured_and_held_against_nothing",
        "`nemesrv conform` without a profile, with a program",
        (
            "tests/conformance/test_command.py::test_a_run_leaves_every_rule_and_each_processs_output",
            "tests/conformance/test_trial.py",
        ),
    ),
    Nightly(_CONFORM_ENDS, "`nemesrv conform` that Ctrl-C interrupts", (_CONFORM_ENDS,), ("SIGTERM",)),
    Nightly(
        "tests/chaos/test_cli.py::test_a_missing_toxiproxy_is_one_line_that_says_how_to_get_it_and_exit_status_4",
        "that Toxiproxy is missing, said by a process",
        (
            "tests/chaos/test_cli.py::test_a_missing_java_is_one_line_that_says_how_to_get_it_and_exit_status_4",
            "tests/chaos/test_preflight.py",
        ),
    ),
    Nightly(
        "tests/operations/replay/test_imported.py::test_the_first_hypothesis_happens_again_and_the_second_does_not",
        "two hypotheses of an import, replayed",
        (_REPLAYED, "tests/operations/replay/test_imported.py"),
    ),
    Nightly(
        "tests/operations/cluster/test_watch.py"
        "::test_no_name_server_gets_more_requests_than_the_limit_whatever_there_is_to_ask",
        "the limit of `nemesrv watch` with 300 topics",
        ("tests/operations/cluster/test_watch.py",),
    ),
    Nightly(_HELP, "the help of more commands without extras", (_HELP,), ("of all",)),
)
