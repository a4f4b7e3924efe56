#!/usr/bin/env bash
# A run as a Slurm array: sbatch examples/cluster/slurm_array.sh, then one job that merges.
#   sbatch --dependency=afterok:JOB --wrap "counterfoil shards merge $RUN"
# All tasks share the folder RUN. The first task that begins writes the plan, the others wait for it and read it.
#SBATCH --job-name=counterfoil
#SBATCH --array=1-8
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail

: "${PHOTOS:?set PHOTOS to the folder of class folders}"
: "${RUN:?set RUN to a folder that every node sees}"
MODEL="${MODEL:-embedded:efficientnet-lite0}"

exec "${COUNTERFOIL:-counterfoil}" run --images "$PHOTOS" ${MASKS:+--masks "$MASKS"} --model "$MODEL" \
    ${RECIPE:+--recipe "$RECIPE"} --out "$RUN" --workers "${SLURM_CPUS_PER_TASK:-1}" --shard auto
