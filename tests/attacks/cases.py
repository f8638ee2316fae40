"""Every attack that was named, with what holds it: the table that the catalogue is complete by.

`20.1` is item 1 of the issue on hardening, `13.17` item 17 of the one on what tests from outside
found, `13.0` its first paragraph, `20.0` what held from the start, `19` the one on TLS and gRPC,
`43.7` the section on attacks of the issue on what outside testing found. A case with attacks is
measured by them: in little memory, and twice the size for twice the work. Where that says nothing,
the case says why.
"""

from __future__ import annotations

from typing import NamedTuple

NO_SIZE = "it has no size: it is refused or not"
DISK = "the disk ends it: nothing grows"
NOTHING_READ = "nothing is read: a mode, a name or a link decides"


class Case(NamedTuple):
    """Something that was attacked."""

    where: str
    what: str
    attacks: tuple[str, ...] = ()
    """of the catalogue: each with a limit of memory and a doubling check"""
    tests: tuple[str, ...] = ()
    """further ones, `path::function` below tests/"""
    memory: str = ""
    """why no limit of memory; empty: there is one"""
    doubling: str = ""
    """why no doubling check; empty: there is one"""


def plain(where: str, what: str, *tests: str, why: str = NO_SIZE) -> Case:
    """A case for which both measures say nothing."""
    return Case(where, what, (), tests, why, why)


_CONSENT = "rmqtool/send/test_targets.py::"
_BOMBS = "attacks/test_bombs.py::"
_STORES = "replay/sandbox/store/test_sqlite_hostile.py::"
_ROBUST = "replay/sandbox/test_robustness.py::"

CASES: tuple[Case, ...] = (
    Case("20.0", "a million SYNs", ("syns",)),
    Case("20.0", "400,000 connections, open requests", ("unanswered", "topics")),
    Case("20.0", "holes and fragments", ("holes", "cut datagrams")),
    Case("20.0", "gzip bombs of captures", ("zeros", "empty archives")),
    Case(
        *("20.0", "68,517 connections in a live capture", ("syns", "unanswered")),
        ("rmqtool/live/test_command.py::test_twenty_thousand_commands_a_second_without_a_loss",),
    ),
    Case("20.0", "3,000 sends to a flapping broker", ("flapping broker",)),
    Case("20.0", "10,000 connections to the sandbox", ("idle connections",)),
    plain(
        *("20.0", "a NameServer that redirects a replay"),
        "replay/transport/test_transport_guard.py::test_a_guard_keeps_everything_from_an_address",
        _CONSENT + "test_a_route_that_changes_is_asked_for_anew",
    ),
    plain(
        *("20.0", "escapes, markup, bidi, formulas in the terminal, HTML, CSV, JSON"),
        "dissectors/test_printable.py::test_any_text_becomes_printable_and_printable_text_stays",
        "analytics/page/test_html.py::test_texts_of_a_capture_become_neither_tags_nor_attributes",
        "dissectors/rows/test_tables.py::test_csv_is_one_line_a_record_and_safe_to_open",
    ),
    # -- item 1: one budget
    Case(
        *("20.1", "a replay that reads ahead bodies of 16 MiB", ("bombs",)),
        (
            _BOMBS + "test_what_a_replay_decompresses_is_paid_for_by_what_it_reads",
            "replay/run/test_read_ahead.py::test_bodies_are_bounded_by_their_bytes",
        ),
    ),
    Case(
        *("20.1", "a long topic among the first rows", ("long topic",)),
        (_BOMBS + "test_a_text_that_nobody_can_read_is_cut_and_the_rest_counted",),
    ),
    Case("20.1", "a route answer of 16 KB", ("queues of a route", "routes")),
    Case(
        *("20.1", "a route of 200 brokers", ("brokers of a route",)),
        (
            "replay/transport/test_names.py"
            "::test_a_route_of_200_names_holds_a_send_no_longer_than_its_timeout",
        ),
    ),
    Case(
        *("20.1", "3 KB that become exported files, or JSON lines", ("bombs",)),
        (_BOMBS + "test_compressed_bodies_fill_no_disk",),
    ),
    Case("20.1", "segments of two bytes behind holes", ("holes",)),
    Case(
        *("20.1", "connections with an unanswered send", ("unanswered",)),
        (
            "replay/captured/test_look_ahead_memory.py"
            "::test_connections_with_an_unanswered_send_are_forgotten",
        ),
    ),
    Case("20.1", "a line of JSON of 100 MB", ("log line",)),
    Case(
        *("20.1", "the search for a lost frame", ("false frames",)),
        ("dissectors/remoting/framing/test_search.py::test_twice_the_stream_is_twice_the_work",),
    ),
    Case("20.1", "references that double", ("doubling",)),
    Case("20.1", "a message tried again for ever", ("retried",)),
    Case("20.1", "messages, properties and groups without end", ("pulled", "properties", "groups")),
    Case("20.1", "answers that nobody asked for", ("orphans", "unasked answers")),
    Case(
        *("20.1", "replies that brokers push", ("pushed replies",)),
        (
            "replay/sending/test_request_reply.py"
            "::test_replies_that_wait_to_be_taken_are_bounded_by_their_bytes",
        ),
    ),
    Case(
        *("20.1", "questions about transactions", ("questions",)),
        (
            "replay/sending/test_transaction.py"
            "::test_questions_that_wait_are_bounded_by_number_and_bytes",
        ),
    ),
    Case(
        *("20.1", "a decoded log in Parquet of 13 KB", ()),
        (
            "attacks/test_parquet.py::test_a_text_that_all_rows_share_is_in_memory_once",
            "attacks/test_parquet.py::test_a_column_that_becomes_too_much_is_refused",
        ),
        doubling="how much a column becomes is asked of the file before it is read",
    ),
    # -- item 2: one guard at the boundary
    Case(
        *("20.2", "brackets in bodies, headers, logs and routes"),
        ("nested", "log depth", "nested route"),
        ("test_foreign.py::test_parsing_has_one_place",),
    ),
    Case("20.2", "garbage and fields from a broker", ("garbage", "fields of an answer")),
    plain(
        *("20.2", "journals, logs, TOML files and markers of somebody else"),
        "test_boundary.py::test_a_journal_of_somebody_else",
        "test_boundary.py::test_a_decoded_log_of_somebody_else",
        "test_boundary.py::test_a_toml_file_of_somebody_else",
        "test_boundary.py::test_a_folder_that_somebody_else_marked",
        "test_boundary.py::test_json_lines_of_somebody_else",
    ),
    # -- item 3: consent
    plain(
        *("20.3", "an address that only a route names"),
        _CONSENT + "test_a_broker_that_only_a_route_names_needs_consent",
        _CONSENT + "test_a_name_is_not_looked_up_before",
    ),
    plain(
        *("20.3", "notations of --allow"),
        "replay/test_safety.py::test_consent_covers_what_was_written_and_nothing_else",
        "replay/test_safety.py::test_what_may_mean_something_else_is_refused",
        "replay/test_safety.py::test_consent_for_one_link_is_none_for_another",
    ),
    plain(
        *("20.3", "a name that stands for another address once it was agreed to"),
        "replay/transport/test_transport_guard.py"
        "::test_a_guard_is_asked_again_for_what_the_system_has_connected_to",
        "replay/test_safety.py::test_consent_for_an_address_is_none_for_a_name_that_looks_like_it",
    ),
    # -- item 4: TLS
    plain(
        *("20.4", "a certificate for another host"),
        "replay/transport/test_transport_tls.py::test_a_certificate_for_another_host",
        "replay/transport/test_transport_tls.py::test_a_certificate_that_is_not_trusted",
    ),
    # -- item 5: full disks
    plain(
        *("20.5", "outputs, exported bodies, standard output on a full disk"),
        "rmqtool/test_cli_failures.py::test_a_full_disk_is_one_message_and_nothing_is_left",
        "rmqtool/test_cli_failures.py::test_standard_output_on_a_full_disk",
        why=DISK,
    ),
    plain(
        *("20.5", "journals and captures of what was sent on a full disk"),
        "replay/run/test_journal.py::test_a_full_disk_leaves_whole_lines_and_drops_what_is_not_sent",
        "replay/test_wire_capture.py::test_a_full_disk_ends_the_capture_and_nothing_else",
        why=DISK,
    ),
    # -- item 6: files
    plain(
        *("20.6", "modes of what was captured and sent"),
        "rmqtool/ui/test_output_modes.py::test_a_new_file_is_the_users_alone",
        "rmqtool/ui/test_output_modes.py::test_a_new_folder_is_the_users_alone",
        "rmqtool/ui/test_output_modes.py::test_a_folder_that_was_opened_stays_open",
        "replay/run/test_journal.py::test_only_the_user_may_read_a_journal",
        "replay/sandbox/store/test_sqlite.py::test_only_the_user_may_read_the_file",
        why=NOTHING_READ,
    ),
    plain(
        *("20.6", "names of temporary files, links, inputs as outputs"),
        "dissectors/test_temporary.py::test_a_new_file_is_made_through_no_link",
        "dissectors/test_owned_folder.py::test_what_lies_at_the_name_of_a_temporary_folder_stays",
        "dissectors/test_owned_folder.py::test_an_input_inside_is_kept",
        "rmqtool/ui/test_output.py::test_what_is_redirected_is_an_input_too",
        why=NOTHING_READ,
    ),
    # -- item 7: smaller ones
    plain(
        *("20.7", "a remark that forges a line"),
        "rmqtool/send/test_command_failures.py::test_a_remark_cannot_forge_a_line",
    ),
    plain(
        *("20.7", "secrets in views"),
        "dissectors/remoting/bodies/test_secrets.py::test_secrets_inside_of_texts_are_masked",
        "dissectors/decode/test_command_row.py"
        "::test_credentials_are_masked_in_whatever_case_they_are_written",
        "dissectors/wireshark/test_crafted.py::test_secrets_are_not_shown",
    ),
    Case(
        *("20.7", "patterns that backtrack", ("pattern",)),
        ("replay/plan/test_rewrite.py::test_a_pattern_that_would_backtrack_for_ever_does_not",),
    ),
    Case(
        *("20.7", "connections to the sandbox that say nothing", ("idle connections",)),
        (_ROBUST + "test_who_says_nothing_does_not_keep_others_out",),
    ),
    Case(
        *("20.7", "answers that nobody reads", ("unread answers", "unread pulls")),
        (_ROBUST + "test_a_client_that_does_not_read_is_given_up",),
    ),
    Case("20.7", "the cost of a SYN", ("syns",)),
    plain(
        *("20.7", "U+061C and tag characters"),
        "dissectors/test_printable.py::test_escapes",
        "dissectors/wireshark/test_crafted.py"
        "::test_what_turns_a_line_round_is_escaped_in_labels_and_columns",
    ),
    # -- items 8 and 9
    plain(
        *("20.8", "rights of a live capture"),
        "dissectors/live/test_privileges.py::test_root_keeps_its_name_and_no_capability",
        "dissectors/live/test_privileges.py::test_a_user_with_one_capability_keeps_none",
        why=NOTHING_READ,
    ),
    plain(
        *("20.9", "the border of the licences"),
        "test_architecture.py::test_imports_keep_the_contracts",
        why=NOTHING_READ,
    ),
    # -- the issue on what tests from outside found
    Case("13.0", "a heartbeat of 1,200 brackets", ("nested",)),
    plain(
        *("13.12", "a journal that names code"),
        "rmqtool/replay/test_prepared.py::test_a_journal_that_names_code_does_not_run_it",
    ),
    plain(
        *("13.13", "notations of a captured address"),
        "replay/test_safety.py::test_every_notation_of_this_machine_is_one_host",
        "replay/test_safety.py::test_an_ipv4_address_inside_of_an_ipv6_one_is_that_host",
        "rmqtool/replay/test_command.py::test_a_captured_address_is_never_a_target",
    ),
    plain(
        *("13.14", "--force on what is not its own"),
        "dissectors/test_owned_folder.py::test_what_it_did_not_write_keeps_the_folder",
        "dissectors/test_owned_folder.py::test_a_marker_from_somebody_else_names_nothing_outside",
        why=NOTHING_READ,
    ),
    plain(
        *("13.15", "--tls system and the name of the host"),
        "replay/transport/test_transport_tls.py::test_a_certificate_for_another_host",
    ),
    Case("13.16", "queues of a route, bodies, lines", ("queues of a route", "bombs", "log line")),
    Case("13.17", "a believable header every 59 bytes", ("false frames",)),
    plain(
        *("13.18", "settings that make a broker fail"),
        _ROBUST + "test_no_setting_makes_a_broker_fail",
    ),
    Case(
        *("13.18", "frames, groups and topics without end"),
        ("unfinished frames", "groups of clients"),
        (
            _ROBUST + "test_unfinished_frames_are_bounded",
            _ROBUST + "test_names_and_codes_of_the_network_are_bounded",
        ),
    ),
    plain(
        *("13.19", "CSV of the Spark job"),
        "rmqtool/report/test_command.py::test_csv_runs_nothing",
    ),
    plain(
        *("13.20", "two signals within milliseconds"),
        "rmqtool/ui/test_interrupt.py::test_two_sigterms_leave_nothing",
        "rmqtool/ui/test_interrupt.py::test_two_sigterms_end_a_replay",
    ),
    plain(
        *("13.31", "a journal on a full disk"),
        "replay/run/test_journal.py::test_outcomes_are_written_where_other_files_are_full",
        why=DISK,
    ),
    plain(
        *("13.32", "a damaged store of the sandbox"),
        "replay/sandbox/store/test_stored_rows.py"
        "::test_a_wrong_column_is_named_and_the_record_counts",
        "replay/sandbox/store/test_stored_rows.py::test_many_damaged_rows_are_counted",
    ),
    Case("13.33", "a topic of 20,000 characters", ("long topic",)),
    # -- the issue on what outside testing found
    Case(
        *("43.7", "a store file that somebody made", ("linked store",)),
        (
            _STORES + "test_a_schema_that_is_not_ours_is_refused_and_left_as_it_is",
            _STORES + "test_what_is_no_regular_file_is_refused",
            _STORES + "test_a_value_over_the_limit_of_a_frame_is_refused",
            _STORES + "test_a_signal_ends_a_broker_that_reads_its_store",
        ),
    ),
    Case(
        *("43.7", "more connections than open files", ("connections without files",)),
        (
            "rmqtool/broker/test_command.py"
            "::test_connections_wait_where_no_file_is_left_and_come_in_later",
        ),
    ),
    Case(
        *("43.7", "all that a broker keeps beside --store-limit"),
        ("kept texts", "groups of clients"),
        (
            "replay/sandbox/test_room.py::test_groups_subscriptions_and_values_share_a_bounded_room",
            "attacks/test_store_limit.py::test_a_flood_takes_no_more_than_the_limit",
        ),
    ),
    plain(
        *("43.7", "few open files; closed standard output"),
        "rmqtool/test_cli_limits.py::test_few_open_files_are_named",
        "rmqtool/test_cli_limits.py::test_closed_standard_output_is_named",
    ),
    plain(
        *("43.7", "names of files with escapes"),
        "rmqtool/ui/test_errors.py::test_names_of_files_in_remarks_are_escaped",
        "rmqtool/ui/test_errors.py::test_remarks_have_one_way_to_standard_error",
    ),
    Case(
        *("43.7", "a replay of 20,000 to 240,000 connections", ("connections", "unanswered")),
        (
            "replay/captured/test_look_ahead_memory.py"
            "::test_sends_of_many_connections_that_wait_are_bounded_by_their_memory",
            "attacks/test_connections.py::test_twice_the_connections_take_the_same_memory",
        ),
    ),
    Case(
        *("43.7", "the target's own address late in a capture that is read from a pipe"),
        ("late target",),
        (
            "rmqtool/replay/test_targets.py::test_a_pipe_is_read_to_its_end_before_the_first_send",
            "rmqtool/replay/test_targets.py"
            "::test_one_that_is_learned_while_it_is_connected_ends_the_run",
        ),
    ),
    Case(
        "19", "TLS: records, handshakes, hellos", ("tiny TLS records", "huge handshakes", "hellos")
    ),
    Case("19", "a key log of any size", ("key logs",)),
    Case("19", "gRPC: headers and their continuations", ("header bombs", "continuations")),
    Case("19", "gRPC: calls and messages", ("calls", "call bombs", "pieces")),
    # -- the issue on what outside testing found
    plain(
        *("43.7", "modules and programs beside a capture"),
        "attacks/test_planted.py"
        "::test_workers_of_spark_import_nothing_from_the_folder_of_a_capture",
        "attacks/test_planted.py"
        "::test_decoding_processes_import_nothing_from_the_folder_of_a_capture",
    ),
    Case(
        *("43.7", "empty members of gzip, zstd, lz4, xz", ("empty archives", "empty zstd frames")),
        ("attacks/test_compressed.py::test_members_without_content_keep_nothing",),
    ),
    Case(
        *("43.7", "runs of a byte in zstd", ("zstd runs",)),
        (
            "attacks/test_compressed.py"
            "::test_runs_of_a_byte_become_no_more_than_their_size_pays_for",
        ),
    ),
    Case(
        *("43.7", "gRPC: headers of streams that stay open", ("open streams", "long headers")),
        (_BOMBS + "test_streams_that_stay_open_keep_few_headers",),
    ),
    Case(
        *("43.7", "gRPC: messages of five bytes on a telemetry stream", ("telemetry",)),
        (_BOMBS + "test_messages_of_five_bytes_are_few_lines",),
    ),
    plain(
        *("43.7", "a manifest that names files outside of the log"),
        "attacks/test_manifest.py::test_parts_are_regular_files_of_the_log",
        "attacks/test_manifest.py::test_tables_beside_them_are_regular_files",
        "attacks/test_manifest.py::test_the_manifest_is_a_regular_file",
    ),
    Case(
        *("43.7", "our own log of 80,000 exchanges with routes", ()),
        ("attacks/test_parquet.py::test_our_own_log_of_many_routes_is_read",),
        doubling="it is read or not",
    ),
)
"""what was attacked, and what holds it"""
