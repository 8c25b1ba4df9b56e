package resume

import (
	"fmt"
	"math/rand/v2"
	"path"
	"path/filepath"
)

// A point is where a run is killed: once an update is on record, or in the middle of a write.
type point struct {
	step int // the update, of the run; 0: at a write
	// write is a pattern of temporary files below the run directory. The file-th that is created,
	// from 1, ends the run after so many changes to it: 0 at its creation.
	write         string
	file, changes int
}

// A change is one of a file below the run directory; its name has slashes.
type change struct {
	name    string
	created bool
}

const checkpointWrite = checkpointDir + "/*.tmp"

// otherWrites are the files besides checkpoints that a run replaces, and how often it may do so.
var otherWrites = []point{
	{write: metricsFile + ".tmp", file: 1}, // cut back by a run that goes on
	{write: recordFile + ".tmp", file: 1},
	{write: "best.safetensors.tmp", file: 2},
	{write: "last.safetensors.tmp", file: 1},
	{write: resultFile + ".tmp", file: 1},
}

func (p point) String() string {
	if p.step > 0 {
		return fmt.Sprintf("at step %d", p.step)
	}
	if p.changes == 0 {
		return fmt.Sprintf("as %s no. %d is created", p.write, p.file)
	}
	return fmt.Sprintf("after %d changes to %s no. %d", p.changes, p.write, p.file)
}

// draw chooses the point where kill number ends a run of total steps that goes on after step from
// and makes a checkpoint every so many steps. Two kills in five, and any that is owed, are inside
// the write of a checkpoint; one in ten is inside another write; the others are at a step, and half
// of them before the first checkpoint in a new run.
func draw(random *rand.Rand, number int, owed, goesOn bool, from, total, every int) point {
	switch {
	case owed || number%5 == 1 || number%5 == 3:
		return point{write: checkpointWrite, file: 1 + random.IntN(max(1, (total-from)/every)), changes: random.IntN(3)}
	case number%10 == 5:
		writes := otherWrites
		if !goesOn {
			writes = writes[1:]
		}
		p := writes[random.IntN(len(writes))]
		p.file, p.changes = 1+random.IntN(p.file), random.IntN(2)
		return p
	case from == 0 && random.IntN(2) == 0:
		return point{step: 1 + random.IntN(every-1)}
	}
	return point{step: min(total, from+1+random.IntN(max(1, total-from)))}
}

// await returns once the run in dir has reached p.
func (w *watcher) await(dir string, p point) error {
	files, changes := 0, 0
	for {
		c, err := w.next()
		if err != nil {
			return err
		}
		if p.step > 0 {
			if c.name != metricsFile {
				continue
			}
			last, err := LastUpdate(filepath.Join(dir, metricsFile))
			if err != nil || last >= p.step {
				return err
			}
			continue
		}
		if ok, _ := path.Match(p.write, c.name); !ok { // the patterns are ours
			continue
		}
		if c.created {
			files, changes = files+1, 0
		} else {
			changes++
		}
		if files > p.file || files == p.file && changes >= p.changes {
			return nil
		}
	}
}
