"""What runs nightly only of experiments and their verdicts: recorded, generated, imported, judged by Spark, stopped."""

from .record import BENCH, DEFECT, SELFTEST, UP, Nightly

_EDGES = "tests/chaos/oracle/test_window_edges.py"
_VIRTUAL = "tests/chaos/experiment/virtual"
_ODD = f"{_VIRTUAL}/test_odd_scenarios.py"
_COMING_AND_GOING = f"{_VIRTUAL}/test_client_processes.py"
_HALF_OPEN = f"{_VIRTUAL}/test_half_open.py::test_the_tables_keep_whoever_can_still_register"
_KNOWN = "tests/generate/test_known_verdicts.py"
_NEEDS_EXTRA = "tests/packaging/test_extras.py::test_a_command_without_its_extra_says_the_sentence_and_the_line_for_pip"
_CHANGED_LIST = "tests/chaos/scenarios/test_lists.py::test_a_changed_list_is_in_use_within_its_time_and_all_follows"
_END_TO_END = "tests/chaos/test_end_to_end.py"
_ENGINES = "tests/chaos/test_engines.py"
_STOPPING = "tests/chaos/test_stopping.py"
_DRILLS = "tests/drills/test_drills.py::test_a_drill_on_our_nodes_gives_the_fields_intervals"
_MUSEUM = "tests/chaos/proof/museum/test_incidents.py"
_INFERENCE = "tests/operations/importing/test_inference.py::test_what_was_done"
_INCIDENTS = f"{_MUSEUM}::test_what_was_reported_happens_and_is_found_and_with_its_fix_does_not"
_PROOF = "tests/operations/importing/test_proof.py"
_SHIPPED = f"{_VIRTUAL}/test_runs.py::test_a_shipped_scenario_is_valid"
_JUDGE = "tests/chaos/checks/spark/test_judge.py"
_HEALTHY = f"{_JUDGE}::test_a_healthy_run_of_real_size_passes_every_check"
_RANDOM = f"{_VIRTUAL}/test_random_scenarios.py::test_no_check_says_invalid_of_a_random_scenario"
_PARTITION = f"{_END_TO_END}::test_a_partition_run_leaves_a_folder_whose_verdict_is_valid"
_TUTORIAL = "tests/test_tutorial.py::test_a_page_of_the_tutorial_does_what_it_says"
_OPEN_FILES = "tests/chaos/test_preflight.py::test_too_few_open_files_are_told_in_the_first_second_by_every_command"
_LINKS = "tests/chaos/reports/test_links.py::test_every_link_leads_to_a_lane_and_a_time_that_contain_the_event"
_HAND_WRITTEN = "tests/chaos/checks/messages/test_order_kept.py"
_BY_HAND = f"{_VIRTUAL}/test_acts_by_hand.py::test_what_is_not_done_as_asked_is_found"
_LESS_ALIKE = "tests/operations/replay/test_replay.py::test_what_is_not_the_same_is_less_alike"
_RESTARTED = "tests/operations/cluster/test_watch.py::test_nothing_is_named_while_everybody_is_restarted_twice_in_a_row"
_SHAPES = f"{_VIRTUAL}/test_shaped_partitions.py::test_the_links_between_its_sides_are_parted_and_every_table_is_true"

_TWO_ODD = (
    "a restart of a broker that still runs",
    "a NameServer lost at the first send",
)

NIGHTLY = (
    Nightly(
        "tests/conformance/test_wrong_clients.py"
        "::test_one_that_only_many_starts_show_is_told_alone_and_among_right_ones",
        "a first entry that is chosen too often",
        ("tests/conformance/test_wrong_clients.py::test_a_wrong_client_is_invalid_by_just_the_right_rule",),
    ),
    Nightly(
        "tests/conformance/test_wrong_clients.py::test_three_right_clients_in_a_program_are_not_invalid_in_any_situation",
        "three right clients in one program, in all situations of conform",
        ("tests/conformance/test_sabotage.py",),
    ),
    Nightly(
        f"{_VIRTUAL}/test_random_stalls.py::test_most_of_many_stalls_are_valid_and_none_is_invalid",
        "many runs with random stalls",
        (f"{_VIRTUAL}/test_random_stalls.py",),
    ),
    Nightly(
        f"{_VIRTUAL}/test_random_stalls.py::test_most_defects_are_found_all_the_same",
        "planted defects beside random stalls",
        (f"{_VIRTUAL}/test_random_stalls.py",),
    ),
    Nightly(
        "tests/operations/importing/test_calibration.py::test_of_recorded_incidents_nothing_wrong_is_certain",
        "how sure import is, over recorded incidents",
        ("tests/operations/importing/test_calibration.py",),
    ),
    Nightly(
        "tests/conformance/test_wrong_clients.py::test_in_all_situations_too",
        "wrong clients in all situations of conform",
        ("tests/conformance/test_sabotage.py",),
    ),
    Nightly(
        "tests/chaos/oracle/test_labels.py::test_of_a_thousand_clients_of_each_kind_none_is_called_what_it_is_not",
        "a thousand clients of each label",
        ("tests/chaos/oracle/test_labels.py",),
    ),
    Nightly(
        f"{_VIRTUAL}/test_runs.py::test_a_shipped_scenario_is_the_same_by_any_order_of_sets",
        "shipped scenarios recorded by two orders of sets",
        (f"{_VIRTUAL}/test_runs.py::test_the_same_seed_gives_the_same_history_byte_for_byte_in_any_process",),
    ),
    Nightly(
        _BY_HAND,
        "more defects of acts by hand and of clocks",
        (_BY_HAND, "tests/chaos/checks/service/test_done_by_hand.py"),
        ("name-server-takes-out-nobody",),
    ),
    Nightly(
        _SHAPES,
        "more partitions by name, recorded",
        (_SHAPES, "tests/chaos/test_shapes.py"),
        ("split_list",),
    ),
    Nightly(
        f"{_EDGES}::test_just_inside_is_valid_and_just_outside_is_invalid",
        "edges of the windows, each from both sides",
        (f"{_EDGES}::test_a_timer_is_found_that_is_2_percent_off", "tests/chaos/checks/service/test_timed_waits.py"),
    ),
    Nightly(
        f"{_EDGES}::test_a_timer_is_found_that_is_2_percent_off",
        "more timers that are 2 % too long or too short",
        (f"{_EDGES}::test_a_timer_is_found_that_is_2_percent_off", "tests/chaos/checks/service/test_timers_kept.py"),
        ("R: registration-longer", "T: send with all its tries-shorter"),
    ),
    Nightly(
        f"{_ENGINES}::test_a_shipped_scenario_is_judged_alike_whole_and_cut_into_parts",
        "every shipped scenario and drill, judged whole and in parts",
        (f"{_ENGINES}::test_a_shipped_scenario_is_judged_alike_whole_and_cut_into_parts",),
        ("smoke", "broker-crash"),
    ),
    Nightly(
        f"{_ENGINES}::test_an_incident_of_the_museum_is_judged_alike_whole_and_cut_into_parts",
        "every incident of the museum and its fix, judged whole and in parts",
        (f"{_ENGINES}::test_a_shipped_scenario_is_judged_alike_whole_and_cut_into_parts",),
        ("i04-accepts-and-does-not-answer-reported",),
    ),
    Nightly(
        f"{SELFTEST}::test_a_defect_and_its_twin_are_judged_alike_whole_and_cut_into_parts",
        "every planted defect and clean twin, judged whole and in parts",
        (DEFECT, _HAND_WRITTEN),
    ),
    Nightly(
        f"{BENCH}::test_everything_is_measured_and_every_aim_judged",
        "the benchmark where there is no C compiler",
        (
            f"{BENCH}::test_everything_is_measured_and_every_aim_judged",
            f"{BENCH}::test_an_answer_with_other_bytes_is_counted",
            f"{BENCH}::test_a_paced_load_sends_so_many_and_frames_in_turn",
        ),
        ("True",),
    ),
    Nightly(
        "tests/bench/test_fronts_bench.py::test_a_front_is_measured_beside_toxiproxy_and_nothing_and_judged",
        "`python -m tests.bench fronts`",
        ("tests/chaos/fronts", "tests/bench"),
    ),
    Nightly(
        "tests/bench/test_logs_bench.py::test_each_reader_has_its_figure_and_sparks_is_judged",
        "`python -m tests.bench logs`",
        ("tests/bench/test_logs_bench.py::test_the_logs_have_what_such_logs_are_full_of",),
    ),
    Nightly(
        "tests/chaos/test_pytest_plugin.py::test_with_xdist_a_wrong_marker_is_the_same_usage_error",
        "a wrong marker where pytest-xdist spreads the tests",
        ("tests/chaos/test_pytest_plugin.py::test_a_wrong_marker_is_a_line_at_collection_and_nothing_is_started",),
    ),
    Nightly(
        _LINKS,
        "the links of the planted defects of all checks but two",
        (_LINKS,),
        ("no_false_eviction", "routes_converge"),
    ),
    Nightly(
        _OPEN_FILES,
        "a machine that allows yet fewer open files, and what other commands say of few",
        (_OPEN_FILES,),
        ("256-run smoke",),
    ),
    Nightly(
        "tests/chaos/live/test_up.py"
        "::test_what_others_and_the_command_do_to_a_cluster_is_in_its_record_and_its_end_is_the_verdicts",
        "Toxiproxy's API, signals and `nemesrv fault` against a cluster of `up --check`",
        (UP, "tests/chaos/live"),
    ),
    Nightly(
        f"{_END_TO_END}::test_up_announces_addresses_that_a_client_can_dial_and_ends_on_ctrl_c",
        "a cluster that stays up, with Spark at hand",
        (UP,),
    ),
    Nightly(
        f"{_INFERENCE}_is_named_first_and_nothing_wrong_is_certain",
        "recorded incidents of 26 kinds, told by what logs would have of them",
        (
            f"{_PROOF}::test_a_crash_and_a_pair_partition_are_found_in_logs_with_wrong_clocks",
            "tests/operations/inferring/test_episodes.py",
        ),
    ),
    Nightly(
        "tests/operations/importing/test_inference.py::test_without_one_servers_log_nothing_wrong_is_certain",
        "the same without one server's log",
        ("tests/operations/inferring/test_episodes.py",),
    ),
    Nightly(_RANDOM, "more random scenarios on the virtual clock", (_RANDOM,), ("1",)),
    Nightly(f"{_RANDOM}_that_spark_has_read", "random scenarios, judged in Spark", (_RANDOM, _SHIPPED)),
    Nightly(
        _SHIPPED,
        "every shipped scenario on the virtual clock",
        (_SHIPPED, _PARTITION, DEFECT, _RANDOM),
        ("broker-crash-4.9",),
    ),
    Nightly(
        f"{_VIRTUAL}/test_runs.py::test_spark_says_valid_of_a_shipped_scenario",
        "every shipped scenario on the virtual clock, judged by Spark",
        (_SHIPPED, _PARTITION, _HEALTHY),
    ),
    Nightly(
        f"{_ENGINES}::test_a_random_scenario_is_judged_alike_whole_and_cut_into_parts",
        "random scenarios, judged whole and in parts",
        (_HAND_WRITTEN, _KNOWN, _HEALTHY),
    ),
    Nightly(
        f"{_KNOWN}::test_a_clean_history_of_200000_events_is_valid_to_every_check",
        "clean generated histories of 200,000 events at three seeds",
        (f"{_KNOWN}::test_a_small_clean_history_is_valid_to_every_check",),
    ),
    Nightly(
        f"{_KNOWN}::test_a_clean_history_of_200000_events_is_valid_to_every_check_by_spark",
        "a clean generated history of 200,000 events, through Spark",
        (_HEALTHY, f"{_KNOWN}::test_a_small_clean_history_is_valid_to_every_check"),
    ),
    Nightly(
        f"{_KNOWN}::test_a_planted_defect_is_found_by_its_checks",
        "every defect of a generated history, through Spark",
        (
            f"{_KNOWN}::test_a_planted_defect_is_found_by_its_checks_without_spark",
            f"{_KNOWN}::test_a_history_planned_as_a_large_one_gets_the_same_verdicts",
        ),
    ),
    Nightly(
        f"{_END_TO_END}::test_a_planted_defect_is_caught_by_its_checks_and_its_clean_twin_by_none",
        "a planted defect on the machine's own clock",
        (DEFECT, _PARTITION),
    ),
    Nightly(
        f"{_END_TO_END}::test_an_interrupted_run_leaves_nothing_running_and_a_history_that_can_be_judged",
        "a run that Ctrl-C interrupts, judged",
        (
            f"{_END_TO_END}::test_an_interrupted_run_leaves_nothing_running_and_a_history_that_can_be_judged",
            f"{_STOPPING}::test_a_second_signal_ends_it_at_once_while_ray_starts",
        ),
        ("SIGTERM",),
    ),
    Nightly(
        "tests/chaos/test_pytest_plugin.py"
        "::test_ctrl_c_leaves_none_of_rays_processes_10_s_later_and_junit_names_the_tests",
        "Ctrl-C in `pytest -n 2`, while Ray starts and while the tests run",
        ("tests/actors/test_what_is_left.py::test_nothing_survives_a_harness_that_is_killed",),
    ),
    Nightly(
        f"{_STOPPING}::test_at_twenty_random_moments",
        "a run stopped at twice twenty random moments",
        (
            f"{_STOPPING}::test_a_second_signal_ends_it_at_once_while_ray_starts",
            f"{_END_TO_END}::test_an_interrupted_run_leaves_nothing_running_and_a_history_that_can_be_judged",
        ),
    ),
    Nightly(
        "tests/packaging/test_example_project.py"
        "::test_the_example_passes_on_both_clocks_and_a_test_that_must_fail_says_how_to_replay_it",
        "the example project with the wheel in an environment of its own, on both clocks",
        ("tests/chaos/test_pytest_plugin.py", "tests/packaging/test_wheel.py", _TUTORIAL),
    ),
    Nightly(
        _TUTORIAL,
        "the tutorial's other pages, and the examples of scenarios, settings and incidents",
        (_TUTORIAL, _PARTITION, UP, "tests/chaos/test_pytest_plugin.py", "tests/chaos/test_report_command.py"),
        ("2-your-scenario",),
    ),
    Nightly(
        _INCIDENTS,
        "all worked incidents",
        (
            f"{_MUSEUM}::test_every_incident_has_an_outcome",
            "tests/chaos/proof/museum/test_command.py::test_an_incident_is_found_and_gone_with_its_fix",
        ),
    ),
    Nightly(
        f"{_PROOF}::test_a_hundred_incidents_of_ten_kinds_are_found",
        "what is found again in the logs of a hundred incidents, with wrong clocks, and cut and edited too",
        (f"{_PROOF}::test_a_crash_and_a_pair_partition_are_found_in_logs_with_wrong_clocks",),
    ),
    Nightly(
        "tests/operations/importing/test_apache_proof.py"
        "::test_the_fault_of_apaches_servers_is_first_by_their_own_logs_and_nothing_wrong_is_certain",
        "four incidents on Apache's own servers and clients, told by their logs "
        "(`python -m tests.operations.importing.apache_proof`: all sixteen)",
        (
            "tests/operations/importing/test_importing.py"
            "::test_apache_s_own_logs_of_an_incident_are_read_and_not_called_wrong",
            "tests/operations/importing/test_apache_proof.py::test_who_is_dropped_twice_came_in_between",
        ),
    ),
    Nightly(
        _DRILLS,
        "the field drills (`python -m tests.drills` measures all with ten seeds)",
        ("tests/drills/test_drills.py::test_what_was_measured_here_is_inside_too", _SHIPPED),
    ),
    Nightly(
        f"{_ODD}::test_it_is_no_alarm_with_other_phases",
        "the odd scenarios with the phases of another seed",
        (f"{_ODD}::test_it_is_no_alarm", _RANDOM),
    ),
    Nightly(
        f"{_ODD}::test_it_is_no_alarm",
        "all but two of the odd scenarios",
        (f"{_ODD}::test_it_is_no_alarm", _RANDOM),
        _TWO_ODD,
    ),
    Nightly(
        f"{_ODD}::test_what_the_rule_was_for_is_still_found_there",
        "a defect in all but two of the odd scenarios",
        (f"{_ODD}::test_what_the_rule_was_for_is_still_found_there", DEFECT, "tests/chaos/checks"),
        _TWO_ODD,
    ),
    Nightly(
        f"{_ODD}::test_commits_to_many_queues_of_a_broker_behind_lost_packets_are_no_alarm",
        "commits to sixteen queues behind lost packets, with two seeds and a defect",
        (f"{_ODD}::test_it_is_no_alarm", _RANDOM, "tests/chaos/checks/clients/test_dead_brokers_avoided.py"),
    ),
    Nightly(
        f"{_VIRTUAL}/test_runs.py::test_a_run_of_minutes_at_rocketmqs_own_timers_takes_a_few_seconds_of_processor_time",
        "how much processor time a recording on the virtual clock takes",
        (_SHIPPED, "tests/bench/test_virtual_bench.py"),
    ),
    Nightly(
        "tests/chaos/oracle/test_start_choice.py::test_power_and_alpha_are_what_simulation_finds",
        "power and alpha of start choice by simulation",
        (
            "tests/chaos/oracle/test_start_choice.py::test_our_own_selector_passes_and_a_bias_of_ten_points_is_found",
            "tests/chaos/oracle/test_start_choice.py",
        ),
    ),
    Nightly(
        _NEEDS_EXTRA,
        "what more commands say where their extra is not installed, with the wheel",
        (_NEEDS_EXTRA, "tests/chaos/test_installation.py"),
        ("run smoke", "compare . ."),
    ),
    Nightly(
        "tests/chaos/test_report_command.py::test_with_json_it_says_the_file_and_how_the_run_ended",
        "`nemesrv report --json` of one run",
        ("tests/chaos/test_report_command.py::test_it_writes_the_page_and_junit_and_prints_where",),
    ),
    Nightly(
        _CHANGED_LIST,
        "a changed list of NameServers with profile 4.9",
        (_CHANGED_LIST, "tests/chaos/scenarios/test_lists.py"),
        ("5.x",),
    ),
    Nightly(
        f"{_COMING_AND_GOING}::test_the_mates_of_a_killed_consumer_take_its_queues_within_the_window",
        "when a killed consumer's queues are taken, recorded",
        (
            f"{_COMING_AND_GOING}::test_clients_come_and_go_and_nothing_is_wrong",
            "tests/chaos/checks/messages/test_queue_ownership.py",
        ),
    ),
    Nightly(
        f"{_VIRTUAL}/test_acts_by_hand.py"
        "::test_a_clock_that_is_set_forward_drops_everybody_at_the_next_scan_or_nobody_and_is_no_alarm",
        "a NameServer's clock that is set forward, recorded",
        (f"{_VIRTUAL}/test_acts_by_hand.py::test_what_is_done_by_hand_is_recorded_and_no_alarm", _BY_HAND),
    ),
    Nightly(
        _HALF_OPEN,
        "half-open links and dropped SYNs with the other profile",
        (_HALF_OPEN,),
        ("half_open-4.9", "syn_drop-5.x"),
    ),
    Nightly(
        _LESS_ALIKE,
        "more changes that make a replay less alike",
        (_LESS_ALIKE,),
        ("timeline.0.do=cut-came", "timeline.1.at_s=45-time"),
    ),
    Nightly(
        _RESTARTED,
        "`nemesrv watch` while all servers are restarted twice",
        ("tests/operations/cluster/test_watch.py",),
    ),
    Nightly(
        "tests/operations/importing/test_distortion.py::test_what_was_done_and_a_minute_round_it_stay",
        "what is left of logs that are cut and edited, of three more incidents",
        ("tests/operations/importing/test_distortion.py::test_what_was_done_and_a_minute_round_it_stay",),
        ("3",),
    ),
    Nightly(
        "tests/chaos/reports/test_page.py"
        "::test_a_million_events_fit_and_the_one_violation_and_the_one_failure_are_drawn",
        "a report of a million events",
        ("tests/chaos/reports",),
    ),
    Nightly(
        "tests/chaos/checks/spark/test_session.py"
        "::test_a_user_without_a_name_and_a_locale_of_english_letters_do_not_keep_the_jvm_from_a_verdict",
        "a JVM for any user id and without a locale",
        (f"{_JUDGE}::test_a_check_that_fails_is_unknown_and_does_not_stop_the_others",),
    ),
    Nightly(
        f"{_JUDGE}::test_a_jvm_that_dies_is_a_harness_failure_and_no_verdict",
        "a JVM that dies as it judges",
        (
            f"{_JUDGE}::test_a_check_that_fails_is_unknown_and_does_not_stop_the_others",
            f"{_STOPPING}::test_while_spark_judges",
        ),
    ),
    Nightly(
        "tests/chaos/checks/spark/test_class_archive.py::test_a_jvm_starts_with_classes_that_it_cannot_read",
        "a JVM over a class archive that is damaged",
        ("tests/chaos/checks/spark/test_class_archive.py",),
    ),
)
