#!/usr/bin/env bash
# A run on a Ray cluster, submitted to its head: the driver runs there, the pieces on all nodes.
# Every node has the same version of Counterfoil and sees PHOTOS and RUN under the same paths. The head serves jobs
# where ray[default] is installed.
set -euo pipefail

: "${RAY_ADDRESS:?set RAY_ADDRESS to the dashboard of the cluster, such as http://head:8265}"
: "${PHOTOS:?set PHOTOS to the folder of class folders}"
: "${RUN:?set RUN to a folder that every node sees}"

exec "${RAY:-ray}" job submit --address "$RAY_ADDRESS" -- \
    counterfoil run --images "$PHOTOS" ${MASKS:+--masks "$MASKS"} --model "${MODEL:-embedded:efficientnet-lite0}" \
    ${RECIPE:+--recipe "$RECIPE"} --out "$RUN" --engine ray:auto
