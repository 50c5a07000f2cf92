"""What runs nightly only of Apache's programs, of clients of other makes, and of `nemesrv conform`."""

from .record import BENCH, DEFECT, NODE_OF_APACHES, UP, Nightly

_CLIENTS = "tests/clients_matrix/test_drivers.py::test_a_client_sends_and_receives_and_ends_at_sigterm"
_FINDINGS = "tests/clients_matrix/test_findings.py"
_SABOTAGE = "tests/conformance/test_sabotage.py"
_APACHE = "tests/apache_matrix/test_runs.py"
_ADMIN = "tests/interop/test_mqadmin.py"
_AGES = "tests/interop/test_java_clients.py"
_SUBCOMMANDS = "tests/interop/test_subcommands.py"
_ADMIN_COMMANDS = "tests/chaos/commands/test_admin.py"
_JAVA = "tests/chaos/apache/test_java_clients.py"
_JAVA_IS_JUDGED = f"{_JAVA}::test_javas_clients_at_right_servers_are_judged_and_nothing_is_wrong"
_OF_EVERY_DAY = ("4.9.8", "5.3.3")

NIGHTLY = (
    Nightly(
        f"{_FINDINGS}::test_a_spring_boot_application_with_four_instances_has_four_columns",
        "a column for each client of a Spring application",
        ("tests/conformance/test_wrong_clients.py::test_among_two_right_ones_it_is_the_one_that_is_invalid",),
    ),
    Nightly(
        _JAVA_IS_JUDGED,
        "Apache's clients 4.9.8 at our servers",
        (_JAVA_IS_JUDGED, "tests/chaos/apache/test_workload_rows.py"),
        ("apache-5.3.3",),
    ),
    Nightly(
        f"{_JAVA}::test_a_wrong_broker_is_convicted_with_javas_clients",
        "wrong brokers of ours under Apache's client 5.3.3",
        (_JAVA_IS_JUDGED, DEFECT),
    ),
    Nightly(
        f"{_JAVA}::test_javas_clients_that_broadcast_are_each_given_every_message",
        "Apache's clients that broadcast",
        (_JAVA_IS_JUDGED, "tests/chaos/apache/test_workload_rows.py"),
    ),
    Nightly(
        f"{_JAVA}::test_a_call_under_way_as_its_server_closes_waits_for_its_time_out_in_4_9_alone",
        "what Apache's clients do as their broker closes the connection under a send",
        (
            "tests/chaos/checks/service/test_recovery_time.py"
            "::test_apaches_client_4_9_waits_out_the_send_that_is_under_way_as_its_broker_closes",
        ),
    ),
    Nightly(
        f"{_JAVA}::test_an_ordered_workload_of_javas_clients_is_judged_at_the_receipts_too",
        "an ordered workload of Apache's clients",
        (_JAVA_IS_JUDGED, "tests/chaos/apache/test_workload_rows.py"),
    ),
    Nightly(
        "tests/conformance/test_command.py::test_our_own_client_does_all_that_its_profile_says",
        "`nemesrv conform` with our own client in every situation, in real time (3 min 30 s)",
        (
            "tests/conformance/test_command.py",
            "tests/conformance/test_trial.py",
            "tests/conformance/test_sabotage.py",
        ),
    ),
    Nightly(
        f"{BENCH}::test_apaches_name_server_is_measured_beside_ours",
        "the benchmark with Apache's NameServers beside ours",
        (
            f"{BENCH}::test_everything_is_measured_and_every_aim_judged",
            f"{BENCH}::test_the_best_value_counts_and_a_ratio_is_to_the_best_of_the_others",
        ),
    ),
    Nightly(
        "tests/conformance/test_sabotage_over_tcp.py"
        "::test_programs_with_a_defect_are_invalid_by_its_rule_alone_and_the_twin_is_valid",
        "sabotaged client programs and their twin under `nemesrv conform`, in real time",
        ("tests/conformance/test_sabotage.py", "tests/conformance/test_command.py"),
    ),
    *(
        Nightly(
            f"tests/chaos/live/test_clients_under_test.py::{test}",
            f"a client under test in `up`: {says}",
            ("tests/chaos/commands/test_wrong_words.py", UP),
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
        ("tests/chaos/commands/test_wrong_words.py", UP),
    ),
    Nightly(
        "tests/clients_matrix/test_as_without_a_proxy.py"
        "::test_clients_meet_behind_toxiproxy_what_they_meet_on_a_direct_connection",
        "clients of other makes behind Toxiproxy and on a direct connection",
        (_CLIENTS, "tests/chaos/faults"),
    ),
    Nightly(
        "tests/interop/test_log_lines.py::test_what_happens_is_logged_in_apaches_words",
        "the log of Apache's NameServer beside ours",
        ("tests/actors/namesrv/test_log_lines.py",),
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
        f"{_APACHE}::test_a_shipped_scenario_is_valid_on_apaches_servers",
        "smoke and a crash on Apache's servers of both versions (`make apache` runs all there are)",
        (
            NODE_OF_APACHES,
            "tests/apache_matrix/test_table.py",
        ),
    ),
    Nightly(
        f"{_APACHE}::test_what_brokers_of_a_role_do_is_valid",
        "groups with an elected master (DLedger, controller), and a SYNC_MASTER without its slave",
        ("tests/chaos/checks/routes/test_one_master.py", "tests/chaos/scenarios/test_elections.py"),
    ),
    Nightly(
        f"{_APACHE}::test_servers_are_upgraded_one_by_one_under_load_and_clients_after_them",
        "Apache's servers from 4.9.7 to 5.3.3, one by one, and its clients from 4.9.8 to 5.3.3 beside each other",
        (
            NODE_OF_APACHES,
            "tests/chaos/scenarios/test_upgrades.py",
        ),
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
        ("tests/clients_matrix/test_twice.py", "tests/conformance/test_sabotage.py"),
    ),
    Nightly(
        f"{_FINDINGS}::test_7056_is_red_on_java_4_9_8_and_green_on_5_3_3_within_a_minute",
        "apache/rocketmq#7056 found by `nemesrv conform` in Java 4.9.8, and not in 5.3.3 (40 s each)",
        (f"{_FINDINGS}::test_javas_client_says_its_language_and_version_and_each_start_is_seen", _SABOTAGE),
    ),
    Nightly(
        f"{_FINDINGS}::test_the_phase_lock_of_ali_ons_is_one_look_up_in_n_minus_one",
        "the phase lock found by `nemesrv conform` in Node's `ali-ons` (2 min 15 s)",
        (_SABOTAGE, _CLIENTS),
    ),
    Nightly(
        "tests/clients_matrix/test_hour.py::test_our_clients_side_by_side_have_no_errors",
        "a client sends, receives, rebalances and leaves (`make client-hour`: for an hour)",
        ("tests/clients_matrix/test_hour.py::test_what_was_said_is_counted", _CLIENTS),
    ),
    *(
        Nightly(f"{_ADMIN}::{test}", f"mqadmin 5.3: {says}", (f"{_ADMIN}::{test}", _ADMIN_COMMANDS), ("4.9.8",))
        for test, says in (
            ("test_a_topic_is_created_changed_and_deleted", "topics"),
            ("test_a_message_is_found_by_id_by_key_and_by_queue_offset", "messages"),
            ("test_the_connections_of_clients_are_shown", "connections"),
            ("test_the_brokers_settings_are_shown_and_changed", "settings"),
            ("test_a_consumer_says_of_itself_what_it_does", "a consumer's state"),
            ("test_a_consume_queue_is_shown", "consume queues"),
            ("test_every_producer_of_a_broker_is_shown", "producers"),
            ("test_a_broker_tidies_up", "tidying up"),
        )
    ),
    *(
        Nightly(f"{_AGES}::{test}", "Java clients of other ages, 3.2.6 to 5.5.0", (f"{_AGES}::{test}",), _OF_EVERY_DAY)
        for test in (
            "test_every_send_is_acknowledged",
            "test_sends_go_round_the_queues_of_brokers",
            "test_a_batch_gets_one_id_for_each_of_its_messages",
            "test_a_group_receives_every_message_once_as_it_was_sent",
            "test_a_body_that_the_producer_compressed_arrives_whole",
            "test_text_beyond_ascii_arrives_in_body_and_properties",
            "test_messages_carry_the_properties_that_apaches_broker_gives_them",
            "test_a_group_that_wants_tags_receives_those_only",
            "test_a_pull_consumer_gets_everything_too_and_is_told_the_end",
            "test_a_lite_pull_consumer_receives_everything_too",
            "test_an_orderly_consumer_receives_in_order_and_again_after_a_failure",
            "test_a_message_is_found_by_its_id_and_its_queue_by_time",
            "test_transactions_end_as_their_producer_says_at_once_or_when_it_is_asked",
            "test_a_request_gets_its_reply",
            "test_traces_of_producer_and_consumer_can_be_read",
            "test_mqadmin_of_its_age_shows_cluster_topic_and_groups",
            "test_a_consumer_that_filters_by_sql_starts_where_brokers_allow_it",
            "test_a_consumer_that_comes_back_goes_on_where_it_was",
            "test_a_message_whose_listener_failed_comes_again_through_the_retry_topic",
        )
    ),
    *(
        Nightly(f"{_SUBCOMMANDS}::{test}", f"mqadmin's subcommands: {says}", (_ADMIN, _ADMIN_COMMANDS))
        for test, says in (
            ("test_what_an_operator_asks_for_is_done", "what works"),
            ("test_what_is_not_there_is_refused_in_words", "what does not"),
            ("test_what_goes_on_until_it_is_stopped_goes_on", "what does not end"),
        )
    ),
    Nightly(
        f"{_ADMIN}::test_the_progress_of_every_group_is_shown",
        "mqadmin: the progress of every group",
        (f"{_ADMIN}::test_consumer_progress_reaches_the_end_of_every_queue", _ADMIN_COMMANDS),
    ),
    Nightly(
        "tests/interop/test_apache_tests.py::test_all_of_apaches_tests_pass",
        "all of Apache's integration tests that can be run here (`make apache-tests` prints a table of them)",
        ("tests/interop/test_apache_tests.py::test_a_few_of_apaches_tests_pass",),
    ),
    Nightly(
        "tests/chaos/proof/defects/test_apache.py::test_it_is_found_on_the_real_thing_and_its_clean_twin_is_not",
        "defects put into Apache's servers from outside, and their clean twins",
        ("tests/chaos/proof/defects/test_apache.py::test_one_is_refused_where_its_node_is_ours",),
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
)
