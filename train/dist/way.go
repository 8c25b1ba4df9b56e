package dist

import (
	"fmt"
	"strconv"
	"strings"
)

// Way names the connection of the workers of a run.
type Way string

const (
	Auto  Way = "auto"  // MPI where a launcher has started several processes, else Off
	Off   Way = "off"   // one worker
	Local Way = "local" // workers of this process
	MPI   Way = "mpi"   // processes that a launcher of MPI has started
)

// ParseWay reads "auto", "off", "local:V", "mpi" or "mpi:V". workers is V, and 0 if the text has
// none.
func ParseWay(text string) (w Way, workers int, err error) {
	name, number, found := strings.Cut(text, ":")
	w = Way(name)
	if found {
		workers, err = strconv.Atoi(number)
	}
	switch {
	case w == "" && !found:
		w = Auto
	case w != Auto && w != Off && w != Local && w != MPI, found && (w == "" || w == Auto || w == Off),
		!found && w == Local, found && err != nil:
		return "", 0, fmt.Errorf("%q: there are auto, off, local:V, mpi and mpi:V, where V is the number of workers", text)
	}
	if found && (workers < 1 || workers > maxWorkers) {
		return "", 0, fmt.Errorf("%q: from 1 to %d workers", text, maxWorkers)
	}
	return w, workers, nil
}

// maxWorkers is the largest number of workers of a run.
const maxWorkers = 1 << 12

// Text is the reverse of ParseWay.
func (w Way) Text(workers int) string {
	if workers == 0 || w == Auto || w == Off {
		return string(w)
	}
	return fmt.Sprintf("%s:%d", w, workers)
}

// launchers has the variables in which launchers give a process the number of processes, and the
// family of MPI libraries that goes with each, for users. A variable counts if with is set, too.
// The first that counts is taken: mpirun within an allocation of Slurm, and then srun.
var launchers = []struct{ size, with, family string }{
	{size: "OMPI_COMM_WORLD_SIZE", family: "Open MPI"},
	{size: "PMI_SIZE", family: "MPICH"},
	{size: slurmTasks, with: "PMIX_RANK", family: "Open MPI"}, // srun --mpi=pmix
}

// slurmTasks is the variable in which srun gives a process the number of processes, whether they
// can find each other or not.
const slurmTasks = "SLURM_STEP_NUM_TASKS"

// Launched returns the number of processes that a launcher of MPI has started, and the family that
// the launcher is of; 0 if none has.
func Launched(getenv func(key string) string) (processes int, family string) {
	for _, l := range launchers {
		if n, err := strconv.Atoi(getenv(l.size)); err == nil && n > 0 && (l.with == "" || getenv(l.with) != "") {
			return n, l.family
		}
	}
	return 0, ""
}

// unjoined returns the number of processes that srun has started without a way to find each other.
func unjoined(getenv func(key string) string) int {
	n, _ := strconv.Atoi(getenv(slurmTasks)) // 0 where there is no such number
	return n
}

// Resolve returns what Auto means for this process. It refuses to train alone in a process that
// was launched as one of several: each of them would train the whole run.
func (w Way) Resolve(getenv func(key string) string) (Way, error) {
	processes, family := Launched(getenv)
	switch {
	case processes > 1 && !hasMPI:
		return "", fmt.Errorf("%s has started %d processes, and this program has no MPI: "+
			"start gnnstore-mpi, which is built with -tags mpi", family, processes)
	case w == Auto && processes > 1:
		return MPI, nil
	case w == Auto && processes == 0 && unjoined(getenv) > 1:
		return "", fmt.Errorf("srun has started %d processes that cannot find each other, and each would train alone: "+
			"let srun use PMIx for Open MPI, or PMI-2 for MPICH", unjoined(getenv))
	case w == Auto:
		return Off, nil
	case w == MPI && !hasMPI:
		return "", fmt.Errorf("{dist} mpi: this program has no MPI: start gnnstore-mpi, which is built with -tags mpi")
	case w == MPI && processes == 0:
		return "", fmt.Errorf("{dist} mpi: no launcher has started this process: start it by mpirun or mpiexec")
	case w != MPI && processes > 1:
		return "", fmt.Errorf("{dist} %s: %s has started %d processes, and each would train alone; "+
			"leave {dist} out, or start one process", w, family, processes)
	}
	return w, nil
}
