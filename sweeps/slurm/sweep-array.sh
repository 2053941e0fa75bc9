#!/usr/bin/env bash
# A sweep as a Slurm job array: one shard a task. Submit it with the number of shards, then merge:
#
#   sbatch --array=1-8 sweeps/slurm/sweep-array.sh sm-split out/sm-split
#   fusescope merge out/sm-split/shard-* --out out/sm-split/whole
#
# A task that was killed (time limit, node failure, scancel) goes on where it was when it is submitted
# again: sbatch --array=3 --export=ALL,SHARDS=8 sweeps/slurm/sweep-array.sh sm-split out/sm-split
# What follows the folder is passed on to every task's sweep, such as --rest-ms 10 or --shape seed-tp2.
#
# Every task must meet the same kind of device: a log of another is refused by "merge". Add what your
# site wants, such as --partition or --gres=gpu:2, on sbatch's command line.
#SBATCH --job-name=fusescope
#SBATCH --ntasks=1
#SBATCH --output=fusescope-%A-%a.log
set -euo pipefail
sweep=${1:?usage: sbatch --array=1-N sweep-array.sh SWEEP FOLDER [OPTION...]}
folder=${2:?usage: sbatch --array=1-N sweep-array.sh SWEEP FOLDER [OPTION...]}
shards=${SHARDS:-$SLURM_ARRAY_TASK_COUNT}
# Replaces this shell, so that Slurm's signals reach the sweep: it ends its trial and closes its log.
exec "${FUSESCOPE:-fusescope}" sweep "$sweep" --shard "$SLURM_ARRAY_TASK_ID/$shards" \
  --out "$folder/shard-$SLURM_ARRAY_TASK_ID" "${@:3}"
