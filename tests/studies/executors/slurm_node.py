"""A real Slurm of one node on loopback, in a folder of its own; whoever starts it is root.

python slurm_node.py FOLDER     starts it, says 'ready SLURM_CONF' and ends with its standard input
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

READY_S = 60.0
CONF = """
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
KillWait=120
MaxArraySize=1001
JobRequeue=1
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=60 State=UP
"""


@contextmanager
def slurm_node(folder: Path, cpus: int) -> Iterator[dict[str, str]]:
    """The environment variables of a Slurm that is ready for jobs.

    Raises:
        RuntimeError: if it does not start; the message has its logs.
    """
    missing = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name, path=_path()) is None]
    if missing:
        raise RuntimeError(f"{', '.join(missing)} not found: apt-get install slurm-wlm munge.")
    host = socket.gethostname().partition(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    conf = folder / "slurm.conf"
    conf.write_text(CONF.format(host=host, folder=folder, ports=_free_ports(2), cpus=cpus))
    # Without control groups, of which a container has none to give.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    folder.chmod(0o755)
    environment = {"SLURM_CONF": str(conf), "PATH": _path()}
    munged = [f"--{name}={folder}/munge.{name}" for name in ("socket", "log-file", "pid-file", "seed-file")]
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        daemons.append(_started(["munged", "--foreground", "--force", f"--key-file={key}", *munged], folder))
        _wait(folder / "munge.socket")
        daemons.append(_started(["slurmctld", "-D", "-f", str(conf)], folder, environment))
        daemons.append(_started(["slurmd", "-D", "-f", str(conf)], folder, environment))
        _wait_until_idle(environment, folder)
        yield environment
    finally:
        subprocess.run(["scancel", "--me"], env={**os.environ, **environment}, check=False, capture_output=True)
        for daemon in reversed(daemons):
            daemon.terminate()
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(timeout=20)
            daemon.kill()
            daemon.wait()


def _started(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    with (folder / f"{command[0]}.out").open("wb") as out:
        environment = {**os.environ, "PATH": _path(), **(environment or {})}
        return subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)


def _wait(path: Path) -> None:
    end = time.monotonic() + READY_S
    while not path.exists():
        if time.monotonic() > end:
            raise RuntimeError(f"{path} did not appear:\n{_logs(path.parent)}")
        time.sleep(0.1)


def _wait_until_idle(environment: dict[str, str], folder: Path) -> None:
    end = time.monotonic() + READY_S
    told = ""
    while told.strip() != "idle":
        if time.monotonic() > end:
            raise RuntimeError(f"Slurm's node is {told!r}, not idle:\n{_logs(folder)}")
        time.sleep(0.5)
        asked = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env={**os.environ, **environment}, capture_output=True, check=False
        )
        told = asked.stdout.decode()


def _logs(folder: Path) -> str:
    files = sorted([*folder.glob("*.out"), *folder.glob("*.log"), *folder.glob("munge.log-file")])
    return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-3000:]}" for file in files)


def _free_ports(count: int) -> list[int]:
    with_ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in with_ports]
    for each in with_ports:
        each.close()
    return ports


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


if __name__ == "__main__":
    with slurm_node(Path(sys.argv[1]), cpus=os.cpu_count() or 1) as told:
        print("ready", told["SLURM_CONF"], flush=True)
        sys.stdin.read()
