# Sourced by the batch scripts: launches troupe on every task of the allocation and turns Slurm's warning into a checkpoint.
set -u
troupe=${TROUPE:-build/release/bin/troupe}
launcher=${TROUPE_LAUNCHER:-mpirun} # or srun
cd "${SLURM_SUBMIT_DIR:-.}" || exit 1
[ -x "$troupe" ] || { echo "troupe: want a built binary at $troupe (build it, or set TROUPE), got none" >&2; exit 2; }

# launch ARGUMENT …: troupe with these arguments, one process a task; returns its exit code.
# bash delivers no signal while a foreground child runs, hence the & and another wait after a trapped signal.
launch() {
  local child code
  case $launcher in
    mpirun)
      OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --bind-to none -n "${SLURM_NTASKS:-1}" "$troupe" "$@" &
      ;;
    srun) srun --mpi=pmix --kill-on-bad-exit=1 "$troupe" "$@" & ;;
    *)
      echo "troupe: TROUPE_LAUNCHER: want mpirun or srun, got $launcher" >&2
      return 2
      ;;
  esac
  child=$!
  # Both launchers pass SIGUSR1 on to every rank; on SIGTERM mpirun would kill them within a second.
  trap 'kill -USR1 "$child" 2>/dev/null' USR1 TERM
  while :; do
    wait "$child"
    code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  trap - USR1 TERM
  return "$code"
}
