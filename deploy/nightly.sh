#!/bin/sh
# Learns where the data is, every night at 03:30 UTC, beside the server: importances from what was used, then weights
# from the log. Gates decide whether the weights go to work; where they refuse, what served serves on.
# The last run's files, with the report of its gates, stay in trained/ until the next.
: "${MEMORY_RANKER_DATA:?names the folder of the store}"

# A shell hears a signal while it waits, not while a command has the foreground; the command goes first, then the shell.
stop() {
    kill $! 2> /dev/null
    wait
    exit 0
}
trap stop TERM INT
run() {
    shift
    "$@" &
    wait $!
}

while :; do
    run -- sleep $(((86400 + 12600 - $(date +%s) % 86400) % 86400 + 1))
    run -- memory-ranker rescore --apply
    rm -rf "$MEMORY_RANKER_DATA/trained"
    run -- memory-ranker train "$MEMORY_RANKER_DATA" --out "$MEMORY_RANKER_DATA/trained" \
        && run -- memory-ranker promote "$MEMORY_RANKER_DATA/trained"
done
