#!/bin/sh
# The campaign of four ranks, on the simulator: every step works, and the summary says who made its numbers.
#   seed_tp4_campaign_test.sh FUSESCOPE FOLDER_OF_THE_SCRIPT
set -eu
command -v python3 >/dev/null || exit 77
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$2/seed_tp4_campaign.py" run "$out/results" --engine sim --seconds 100000 --fusescope "$1"
fail() {
  echo "$1" >&2
  exit 1
}
summary=$out/results/summary.md
for words in 'Engine sim: simulated on h200-nvlink. **Every number here is simulated; nothing was measured.**' \
  '## Ladder, links as they are' '## Ladder, links at 50 GB/s' '## Ladder, links at 25 GB/s' \
  '+ all hands' '## Counterfactual rungs' 'dispatch_comm_sms=32 |' '## SM split' \
  '## Pull and slot orders, links at 25 GB/s' '## Ranks, at 2048 tokens in all' \
  'rank correlation 1.000'; do
  grep -qF "$words" "$summary" || fail "no '$words' in the summary"
done
if grep -q 'measured \[' "$summary" || grep -q 'Not done' "$summary"; then
  fail 'a simulated number as measured, or a step that was not done'
fi
# By token the pulls wait for rank 0; interleaved they do not.
grep -q 'pulls-by-token.*The egress of rank 0 is a bottleneck' "$summary" || fail 'no bottleneck by token'
if grep 'slots-interleaved' "$summary" | grep -q bottleneck; then
  fail 'a bottleneck with interleaved slots'
fi
[ "$(find "$out/results" -type f | wc -l)" -le 8 ] || fail 'more than 8 files'
[ -z "$(find "$out/results" -type f -size +16384k)" ] || fail 'a file of more than 16 MiB'
"$2/seed_tp4_campaign.py" report "$out/results" "$out/reports" --fusescope "$1"
for folder in ladder/link-50 slot-order/link-25/pulls-by-token scaling/seed-tp2 sm-split sm-tax; do
  test -s "$out/reports/sim/$folder/report.md" || fail "no report of $folder"
done
