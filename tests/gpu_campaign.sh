#!/usr/bin/env bash
# The GPU tests, and compute-sanitizer over a small shape, from a folder of carried binaries: on a
# machine with GPUs that has neither this build tree nor ctest.
#
#   tests/gpu_campaign.sh pack BUILD BIN     before: copies the test programs of a build, stripped
#   tests/gpu_campaign.sh OUT [PART...]      runs; BIN is $FUSESCOPE_BIN (default: build/gpu-bin)
#
# Parts (default: all of them, in this order):
#   one         all GPU tests that one device is enough for
#   two         the tests of two devices; skipped where there is one
#   four        the tests of four devices, the third kernel's too; where there are fewer, those of four
#               ranks that share them
#   third       both of that for the third kernel, GEMM + reduce-scatter
#   third_sanitized   all the tools below on the third kernel
#   program     fusescope itself, as a user runs it, on the devices that there are
#   memcheck racecheck synccheck initcheck   that tool, one and two ranks on one device
#
# Writes OUT/records.jsonl (one line a step), OUT/machine.txt and OUT/log.txt, prints a table, and ends
# with 1 if a step failed, or if nothing ran in it although there is a GPU. A step that outlasts its
# limit is killed, and is a failure.
set -u -o pipefail

kPrograms=(cuda_engine_test layer_cuda_test gemm_test gemm_gate_test kernels_hold_test layer_timing
           layer_records truth_campaign fusescope cli_gpu_test projection_test projection_timing)

pack() {
  local build=$1 bin=$2
  mkdir -p "$bin" || exit 2
  for program in "${kPrograms[@]}"; do
    if [[ ! -x $build/bin/$program ]]; then
      echo "gpu_campaign: $build/bin/$program is not there: build it first" >&2
      exit 2
    fi
    strip -o "$bin/$program" "$build/bin/$program" || exit 2
  done
  git -C "$(dirname "$0")" describe --always --dirty --abbrev=40 >"$bin/commit.txt"
  du -sh "$bin"
}

if [[ ${1:-} == pack && $# == 3 ]]; then
  pack "$2" "$3"
  exit
fi
if [[ $# == 0 || $1 == -* || $1 == pack ]]; then
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0" >&2
  exit 2
fi

out=$1
shift
parts=("$@")
[[ ${#parts[@]} == 0 ]] &&
  parts=(one two four third program memcheck racecheck synccheck initcheck third_sanitized)
bin=${FUSESCOPE_BIN:-build/gpu-bin}
mkdir -p "$out" || exit 2
records=$out/records.jsonl
log=$out/log.txt
: >"$records"
: >"$log"
failed=0
table=()
trap 'rm -f "$out/step.txt"' EXIT

if [[ ! -x $bin/cuda_engine_test ]]; then
  echo "gpu_campaign: no cuda_engine_test in $bin; FUSESCOPE_BIN names the folder that 'pack' filled" >&2
  exit 2
fi
# NCCL from the Python packages, where the loader finds none.
if [[ -z ${FUSESCOPE_NCCL:-} ]] && ! ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
  nccl=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])' 2>/dev/null)/lib/libnccl.so.2
  [[ -f $nccl ]] && export FUSESCOPE_NCCL=$nccl
fi
export FUSESCOPE_PROGRAM=$bin/fusescope # for cli_gpu_test
gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | wc -l)
{
  date -u +%Y-%m-%dT%H:%M:%SZ
  echo "commit $(cat "$bin/commit.txt" 2>/dev/null || echo "not known")"
  nvidia-smi --query-gpu=index,name,driver_version,clocks.sm,clocks.max.sm,power.limit --format=csv
  nvidia-smi topo -m | sed 's/\x1b\[[0-9;]*m//g' # underlined even in a file
  compute-sanitizer --version 2>/dev/null | tail -n 1
} >"$out/machine.txt" 2>&1

number_of() { # PATTERN: the number in the last line of step.txt that matches, or 0
  local found
  found=$(sed -n "s/$1/\1/p" "$out/step.txt" | tail -n 1)
  echo "${found:-0}"
}

# step NAME SECONDS COMMAND...: runs it, notes what came of it.
step() {
  local name=$1 limit=$2 begin end seconds rc verdict passed bad skipped summary
  shift 2
  begin=$(date +%s%3N)
  timeout --kill-after=10 "$limit" "$@" >"$out/step.txt" 2>&1
  rc=$?
  end=$(date +%s%3N)
  seconds=$(((end - begin) / 1000)).$(printf '%03d' $(((end - begin) % 1000)))
  passed=$(number_of '^\[  PASSED  \] \([0-9]*\) test.*')
  bad=$(number_of '^\[  FAILED  \] \([0-9]*\) test.*')
  skipped=$(number_of '^\[  SKIPPED \] \([0-9]*\) test.*')
  summary=$(sed -n 's/^=* *\(\(ERROR\|RACECHECK\) SUMMARY: .*\)/\1/p' "$out/step.txt" | tail -n 1)
  verdict=passed
  if ((rc == 124 || rc == 137)); then
    verdict="out of time"
  elif ((rc != 0)); then
    verdict=failed
  elif ((passed == 0)); then
    verdict=skipped # every test, which is no success where there is a GPU
  fi
  [[ $verdict == passed || ($verdict == skipped && $gpus == 0) ]] || failed=1
  printf '{"step": "%s", "verdict": "%s", "exit": %d, "seconds": %s, "passed": %d, "failed": %d, "skipped": %d, "sanitizer": "%s", "command": "%s"}\n' \
    "$name" "$verdict" "$rc" "$seconds" "$passed" "$bad" "$skipped" \
    "${summary//\"/}" "$(basename "$1") ${*:2}" >>"$records"
  {
    echo "==== $name: $verdict (exit $rc)"
    if [[ $verdict == passed ]]; then
      tail -n 15 "$out/step.txt"
    else
      head -c 200000 "$out/step.txt"
    fi
  } >>"$log"
  table+=("$(printf '%-42s %-12s %9s s %5d passed %4d failed %4d skipped  %s' "$name" "$verdict" \
    "$seconds" "$passed" "$bad" "$skipped" "$summary")")
  echo "${table[-1]}"
}

# Suites of cuda_engine_test that have tests of such names: each is a step of its own, so that after a
# crash the others still run.
suites() { # FILTER [PROGRAM]
  "$bin/${2:-cuda_engine_test}" --gtest_list_tests --gtest_filter="$1" |
    sed -n 's|^\([A-Za-z0-9]*/\)\{0,1\}\([A-Za-z0-9]*\)\.$|\2|p'
}

one() {
  local suite
  export CUDA_VISIBLE_DEVICES=0
  step "tables" 60 "$bin/layer_cuda_test"
  step "gemm" 120 "$bin/gemm_test"
  step "gemm gates" 120 "$bin/gemm_gate_test"
  step "hold" 60 "$bin/kernels_hold_test"
  for suite in $(suites '-*TwoDevices*:*FourDevices*'); do
    step "$suite" 120 "$bin/cuda_engine_test" \
      --gtest_filter="$suite.*:*/$suite.*:-*TwoDevices*:*FourDevices*"
  done
  # Launches that block, and streams that share one hardware queue: nothing may depend on either.
  step "Sanitized, blocking launches" 120 env CUDA_LAUNCH_BLOCKING=1 \
    "$bin/cuda_engine_test" --gtest_filter="*/Sanitized.*:-*TwoDevices*"
  step "Sanitized, one connection" 120 env CUDA_DEVICE_MAX_CONNECTIONS=1 \
    "$bin/cuda_engine_test" --gtest_filter="*/Sanitized.*:-*TwoDevices*"
  unset CUDA_VISIBLE_DEVICES
}

two() {
  local suite filter
  if ((gpus < 2)); then
    echo "two: skipped, there are $gpus GPUs"
    return
  fi
  for suite in $(suites '*TwoDevices*:FullSize.*'); do
    filter="$suite.*TwoDevices*:*/$suite.*TwoDevices*"
    case $suite in
      TwoDevices* | FullSize) filter="$suite.*" ;; # FullSize takes two devices where there are two
    esac
    step "$suite, two devices" 120 "$bin/cuda_engine_test" --gtest_filter="$filter"
  done
}

four() {
  local suite program filter
  if ((gpus < 4)); then
    step "four ranks on $gpus devices" 240 "$bin/cuda_engine_test" \
      --gtest_filter="*FourRanks*:*/CoLocated.*"
    step "third kernel, four ranks on $gpus devices" 120 "$bin/projection_test" \
      --gtest_filter="*FourRanks*:*/ReduceScatterMatrix.*:-*FourDevices*"
    return
  fi
  for program in cuda_engine_test projection_test; do
    for suite in $(suites '*FourDevices*' "$program"); do
      filter="$suite.*FourDevices*:*/$suite.*FourDevices*"
      [[ $suite == FourDevices* ]] && filter="$suite.*"
      step "$suite, four devices" 120 "$bin/$program" --gtest_filter="$filter"
    done
  done
}

third() {
  local suite
  export CUDA_VISIBLE_DEVICES=0
  for suite in $(suites '-*TwoDevices*:*FourDevices*' projection_test); do
    step "$suite" 120 "$bin/projection_test" \
      --gtest_filter="$suite.*:*/$suite.*:-*TwoDevices*:*FourDevices*"
  done
  step "ReduceScatterSanitized, blocking launches" 120 env CUDA_LAUNCH_BLOCKING=1 \
    "$bin/projection_test" --gtest_filter="*/ReduceScatterSanitized.*:-*TwoDevices*"
  unset CUDA_VISIBLE_DEVICES
  if ((gpus >= 2)); then
    for suite in $(suites '*TwoDevices*' projection_test); do
      step "$suite, two devices" 120 "$bin/projection_test" \
        --gtest_filter="$suite.*TwoDevices*:*/$suite.*TwoDevices*"
    done
  else
    echo "third: two devices skipped, there are $gpus GPUs"
  fi
}

third_sanitized() {
  local tool limit
  for tool in memcheck racecheck synccheck initcheck; do
    limit=150
    [[ $tool == racecheck ]] && limit=240
    sanitize "$tool" "$limit" projection_test ReduceScatterSanitized
  done
}

program() {
  step "program" 300 "$bin/cli_gpu_test"
}

sanitize() { # TOOL SECONDS [PROGRAM SUITE]: for each test
  local tool=$1 program=${3:-cuda_engine_test} suite=${4:-Sanitized} test
  local tests=(OneRank TwoRanksOnOneDevice)
  export CUDA_VISIBLE_DEVICES=0 FUSESCOPE_TEST_DEADLINE_S=300
  # Poisoned buffers count as initialised: initcheck also gets memory as it comes.
  [[ $tool == initcheck ]] && tests+=(FreshMemory)
  for test in "${tests[@]}"; do
    step "$tool, $suite.$test" "$2" compute-sanitizer --tool "$tool" --error-exitcode 99 \
      --print-limit 20 "$bin/$program" --gtest_filter="*/$suite.$test/*"
  done
  unset CUDA_VISIBLE_DEVICES FUSESCOPE_TEST_DEADLINE_S
}

for part in "${parts[@]}"; do
  case $part in
    one) one ;;
    two) two ;;
    four) four ;;
    third | third_sanitized) "$part" ;;
    program) program ;;
    memcheck | synccheck | initcheck) sanitize "$part" 150 ;;
    racecheck) sanitize racecheck 240 ;;
    *)
      echo "gpu_campaign: no part '$part'" >&2
      exit 2
      ;;
  esac
done

echo
printf '%s\n' "${table[@]}"
exit $failed
