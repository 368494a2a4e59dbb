#!/bin/sh
# Learns where the data is, every night at 03:30 UTC, beside the server: importances from what was used, then weights
# from the log. Gates decide whether the weights go to work; where they refuse, what served serves on.
# The last run's files, with the report of its gates, stay in trained/ until the next.
: "${MEMORY_RANKER_DATA:?names the folder of the store}"
trap 'exit 0' TERM INT
while :; do
    sleep $(((86400 + 12600 - $(date +%s) % 86400) % 86400 + 1)) &
    wait $!
    memory-ranker rescore --apply
    rm -rf "$MEMORY_RANKER_DATA/trained"
    memory-ranker train "$MEMORY_RANKER_DATA" --out "$MEMORY_RANKER_DATA/trained" \
        && memory-ranker promote "$MEMORY_RANKER_DATA/trained"
done
