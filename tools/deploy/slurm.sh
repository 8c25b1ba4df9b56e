#!/bin/sh
# sbatch slurm.sh: trains on parts, each of which lies on the disk of a node.
#SBATCH --job-name=gnnstore
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --signal=TERM@600

# Ten minutes before the time is up, srun sends SIGTERM: all workers stop after one step, and
# worker 0 writes a checkpoint. The same script goes on with the run.
parts=${PARTS:-/local/papers-parts}     # on each node, part-N.gnn for task N
shared=${SHARED:-/shared/papers-parts}  # all of them, where every node reads them
run=${RUN:-/shared/runs/papers}

# Each node gets its part once. A copy that was interrupted is made anew.
srun --ntasks-per-node=1 sh -c '
	part=part-$SLURM_PROCID.gnn
	mkdir -p "$1" && [ -e "$1/$part" ] || {
		rm -rf "$1/$part.copy" && cp -r "$2/$part" "$1/$part.copy" && mv "$1/$part.copy" "$1/$part"
	}
' copy "$parts" "$shared" || exit

# Open MPI finds the others by PMIx; with MPICH give --mpi=pmi2.
exec srun --mpi=pmix gnnstore-mpi train "$parts" --run "$run" --resume --memory 56GiB --checkpoint-every 500
