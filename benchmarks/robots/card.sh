#!/usr/bin/env bash
# Trains for the robots' trial on a machine with a GPU and without network:
#   benchmarks/robots/card.sh CARRIED SECONDS WAIT OUT [WORDS FOR run.py]
# CARRIED is what carry.py packed, perhaps with the compiled programs of an earlier machine (CARRIED/programs.tar). The
# first call starts the runner for SECONDS, in a process session of its own, which goes on when the call has ended; each
# call waits for WAIT seconds or the runner's end and copies what there is to OUT: rows.jsonl, log.txt, policies.tar,
# util.txt, and, after the end, programs.tar in parts.
#
# The card is shared by CUDA's Multi-Process Service, without which processes take turns: with four or five side by side
# it does about half as much again.
set -euo pipefail
carried=$(realpath "$1") seconds=$2 wait_s=$3 out=$4
shift 4
work=/tmp/robots-trial cache=/tmp/robots-trial-cache site=/tmp/robots-trial-site
if [ ! -f "$work/pid" ]; then
    python3 -m benchmarks.robots.carry "$carried" --unpack "$site"
    mkdir -p "$work" "$cache"
    cp -r benchmarks results "$work"
    if [ -f "$carried/programs.tar" ]; then tar xf "$carried/programs.tar" -C "$cache" || true; fi # it may end early
    export PYTHONPATH=$site CUDA_MPS_PIPE_DIRECTORY=/tmp/mps CUDA_MPS_LOG_DIRECTORY=/tmp/mps-log
    if command -v nvidia-cuda-mps-control > /dev/null; then
        mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
        setsid nvidia-cuda-mps-control -d
    fi
    cd "$work"
    setsid python3 -m benchmarks.robots.run --seconds "$seconds" --out "$work/out" "$@" > "$work/run.txt" 2>&1 < /dev/null &
    echo $! > "$work/pid"
    setsid bash -c "while kill -0 $!; do echo \"\$(date +%s) \$(nvidia-smi --query-gpu=utilization.gpu,memory.used,power.draw \
        --format=csv,noheader) load \$(cut -d' ' -f1 /proc/loadavg)\"; sleep 10; done" > "$work/util.txt" 2> /dev/null < /dev/null &
fi
pid=$(cat "$work/pid")
began=$SECONDS
while [ $((SECONDS - began)) -lt "$wait_s" ] && kill -0 "$pid" 2> /dev/null; do sleep 1; done
for file in out/rows.jsonl out/log.txt out/policies.tar util.txt; do
    if [ -f "$work/$file" ]; then cp "$work/$file" "$out"; fi
done
grep -v warp "$work/run.txt" | tail -n 60 || true # at first there is nothing
tail -n 3 "$work/util.txt" || true
if ! kill -0 "$pid" 2> /dev/null; then
    cd "$cache"
    ls -t | grep -v -e rows.jsonl -e policies.tar | tar cf - -T - | head -c 45M | split -b 15M - "$out/programs.tar." || true
    echo "The runner has ended."
fi
