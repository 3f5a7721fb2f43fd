#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A SLURM cluster of this one machine on the loopback address, to try jobs on: munged, slurmctld and slurmd with all that
# they write in one folder. Debian's packages slurm-wlm and munge; as root. Nothing is left in /etc, /var or /run.
#
#   scripts/starters/slurm_cluster.sh start FOLDER [CPUS]   prints what to set; CPUS (4) may be more than there are
#   export SLURM_CONF=FOLDER/slurm.conf
#   srun -n 4 hostname
#   scripts/starters/slurm_cluster.sh stop FOLDER
set -eu
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 64; }
[ $# -ge 2 ] || usage
command=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cpus=${3:-4}
host=$(hostname -s)

ended() { ! kill -0 "$1" 2>/dev/null; }

stop_one() {  # by the process id that it wrote
  [ -s "$folder/$1.pid" ] || return 0
  pid=$(cat "$folder/$1.pid")
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 100); do ended "$pid" && break; sleep 0.1; done
  ended "$pid" || kill -9 "$pid"
  rm -f "$folder/$1.pid"
}

start() {
  for program in munged slurmctld slurmd srun; do
    command -v "$program" >/dev/null || { echo "slurm_cluster: $program is missing: apt-get install slurm-wlm munge" >&2; exit 69; }
  done
  chmod 755 "$folder"
  mkdir -p "$folder/state" "$folder/spool"
  [ -s "$folder/munge.key" ] || head -c 128 /dev/urandom > "$folder/munge.key"
  chmod 400 "$folder/munge.key"
  cat > "$folder/slurm.conf" <<CONF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
CryptoType=crypto/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=30
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=here Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  munged --force --socket="$folder/munge.socket" --key-file="$folder/munge.key" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"
  SLURM_CONF=$folder/slurm.conf slurmctld -f "$folder/slurm.conf"
  SLURM_CONF=$folder/slurm.conf slurmd -f "$folder/slurm.conf" -N "$host"
  for _ in $(seq 300); do
    case $(SLURM_CONF=$folder/slurm.conf sinfo -h -o %t 2>/dev/null) in idle) echo "export SLURM_CONF=$folder/slurm.conf"; return ;; esac
    sleep 0.1
  done
  echo "slurm_cluster: the node did not become idle; see $folder/*.log" >&2
  tail -n 5 "$folder"/*.log >&2
  exit 71
}

case $command in
  start) start ;;
  stop) for program in slurmd slurmctld munged; do stop_one "$program"; done ;;
  *) usage ;;
esac
