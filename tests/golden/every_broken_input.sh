#!/usr/bin/env bash
# Checks the corpus of broken inputs as a whole: every file of broken/ is used by a transcript, and every command of the
# broken-*.txt transcripts prints exactly one error line, `sailor: FILE...: ...`, and exits with 2.
set -euo pipefail
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
failed=0
for file in "$golden"/broken/*; do
  if ! grep -q "^\\$ .*broken/${file##*/}\\b" "$golden"/transcripts/broken-*.txt; then
    echo "no transcript uses broken/${file##*/}" >&2
    failed=1
  fi
done
commands=$(cat "$golden"/transcripts/broken-*.txt | grep -c '^\$ ')
errors=$(cat "$golden"/transcripts/broken-*.txt | grep -cE '^2> sailor: [^ :]+(:[0-9]+)?: ')
lines=$(cat "$golden"/transcripts/broken-*.txt | grep -c '^2> ')
exits=$(cat "$golden"/transcripts/broken-*.txt | grep -c '^exit 2$')
echo "$commands broken inputs, $errors errors with a place, $lines lines on stderr, $exits exits with 2"
((commands >= 25 && errors == commands && lines == commands && exits == commands && failed == 0))
