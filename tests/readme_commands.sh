#!/usr/bin/env bash
# Runs every fusescope command that the README shows, in its order, in an empty folder.
# readme_commands.sh README FUSESCOPE_BINARY
set -euo pipefail
readme=$1
PATH=$(dirname "$2"):$PATH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir out
count=0
while IFS= read -r command; do
  echo "\$ $command"
  bash -euo pipefail -c "$command" >last_output 2>&1 || {
    status=$?
    cat last_output
    echo "the README's command failed with status $status"
    exit 1
  }
  count=$((count + 1))
done < <(awk '/^```sh$/ {inside = 1; next} /^```$/ {inside = 0} inside && /^fusescope /' "$readme")
test "$count" -ge 10 || { echo "only $count commands found in $readme"; exit 1; }
echo "$count commands ran"
