#!/bin/sh
# The script of the reference runs, on the simulator: every step works, and every report is made.
#   reference_runs_test.sh FUSESCOPE FOLDER_OF_THE_SCRIPT
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$2/make" "$1" "$out/runs" sim h200-nvlink
"$2/render" "$1" "$out/runs"
for folder in seed-tp2 link-50 link-25 skewed qwen3-30b-a3b sm-tax; do
  test -s "$out/runs/$folder/report.md"
done
for folder in seed-tp2 link-50 link-25; do
  for words in '## Ladder' 'all hands' '## Knobs' '## Suggestions' 'SM tax' 'arrival limit'; do
    grep -q "$words" "$out/runs/$folder/report.md" || { echo "$folder: no $words" >&2; exit 1; }
  done
done
grep -q 'from 6 waves on 128 SMs to 7 on 124' "$out/runs/sm-tax/report.md"
