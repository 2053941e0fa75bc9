#!/usr/bin/env bash
# A sweep as a job array on a real Slurm of one node, which this script starts and stops; then the merge.
# slurm_test.sh FUSESCOPE SWEEP_ARRAY_SCRIPT
# Exit code 77: skipped, because Slurm is not installed or cannot run here; the last line says why.
set -euo pipefail
fusescope=$1
array_script=$2

skip() {
  echo "SKIPPED: $1"
  exit 77
}
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch squeue sinfo scontrol; do
  command -v "$program" >/dev/null || skip "no $program here (Debian: slurmctld slurmd slurm-client munge)"
done
[ "$(id -u)" -eq 0 ] || skip "slurmd needs root to start jobs"

folder=$(mktemp -d)
chmod 755 "$folder"
pids=()
stop() {
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap stop EXIT

# Authentication of its own, with its own key and socket.
mkdir -p "$folder"/{munge,state,spool,out}
chmod 700 "$folder/munge"
head -c 128 /dev/urandom >"$folder/munge/key"
chmod 600 "$folder/munge/key"
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" \
  >"$folder/munged.out" 2>&1 &
pids+=($!)

node=$(hostname -s)
port=$((20000 + RANDOM % 12000))  # below those that connections get
cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge.socket
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1
MessageTimeout=60
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=test Nodes=$node Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
# slurmd insists on a cgroup plugin, even though jobs are not put into any.
if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
  printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' >"$folder/cgroup.conf"
else
  echo "CgroupPlugin=cgroup/v1" >"$folder/cgroup.conf"
fi
export SLURM_CONF=$folder/slurm.conf
# Until a command succeeds, a daemon has ended, or a minute and a half has passed.
await() {
  for _ in $(seq 450); do
    "$@" && return 0
    for pid in "${pids[@]}"; do
      kill -0 "$pid" 2>/dev/null || return 1
    done
    sleep 0.2
  done
  return 1
}
await [ -S "$folder/munge.socket" ] || skip "munged does not start: $(tail -n 1 "$folder/munged.out")"
slurmctld -D >"$folder/slurmctld.out" 2>&1 &
pids+=($!)
slurmd -D -N "$node" >"$folder/slurmd.out" 2>&1 &
pids+=($!)
idle() { [ "$(sinfo -h -o %t 2>/dev/null)" = idle ]; }
await idle || skip "the node does not come up: $(tail -n 2 "$folder/slurmctld.log" "$folder/slurmd.log" 2>&1 | tr '\n' ' ')"
echo "Slurm: $(sbatch --version), node $node"

cat >"$folder/shape.json" <<'JSON'
{"name": "tiny", "source": "a test", "ranks": 2, "tokens_per_rank": 64, "hidden": 256, "experts": 8,
 "topk": 2, "intermediate": 128}
JSON
cat >"$folder/sweep.json" <<'JSON'
{"name": "array", "shape": "shape.json", "routing": "uniform", "engine": "sim",
 "axes": {"dispatch_comm_sms": [4, 8, 12, 16, 20, 24], "tokens_per_block": [4, 8, 12]}}
JSON
cd "$folder"
export FUSESCOPE=$fusescope
job=$(sbatch --parsable --array=1-3 "$array_script" sweep.json out)
# Over once Slurm says so: a controller that does not answer has said nothing.
until jobs=$(squeue -h 2>&1) && [ -z "$jobs" ]; do
  [ "$SECONDS" -lt 1500 ] || { echo "the jobs do not end: $jobs"; exit 1; }
  sleep 0.2
done
cat fusescope-"$job"-*.log
[ "$(ls -d out/shard-* | wc -l)" -eq 3 ] || { echo "not all shards ran"; exit 1; }
"$fusescope" merge out/shard-* --out out/whole
trials=$(tail -n +2 out/whole/trials.jsonl | wc -l)
[ "$trials" -eq 18 ] || { echo "$trials trials of 18 in the whole"; exit 1; }
# The whole is the sweep: nothing is left to run, and the winner is that of one machine.
"$fusescope" sweep sweep.json --out out/whole --json >whole.json
"$fusescope" sweep sweep.json --out out/alone --json >alone.json
best() { grep -A 40 '"best": {' "$1" | grep -m 1 '"median_us"'; }
[ "$(best whole.json)" = "$(best alone.json)" ] || { echo "another winner"; exit 1; }
grep -q '"ran": 0' whole.json || { echo "trials were run again"; exit 1; }
echo "3 shards, 18 trials, one winner"
