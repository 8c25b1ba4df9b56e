package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/plan"
)

// Record has the options and the circumstances with which a run started. run.json and every
// checkpoint have it. If they differ, the checkpoint counts: see Dir.readRecord.
type Record struct {
	Dataset string  `json:"dataset"` // Absolute, to resume from any working directory; as is Options.Init
	Seal    string  `json:"seal"`
	Options Options `json:"options"`
	// Device is the one of kernels.Devices that computed. It is empty in records of earlier
	// versions, which had the CPU alone. DeviceName is the name of the processor, if the device
	// tells it.
	Device     string `json:"device,omitempty"`
	DeviceName string `json:"device_name,omitempty"`
	Kernels    string `json:"kernels"`
	DiskEngine string `json:"disk_engine"`
	// Costs are the measured costs of reading. A resumed run uses them, so that it makes the same
	// extents.
	Costs  disk.Costs  `json:"disk_costs"`
	Memory plan.Budget `json:"memory"` // how it was split
	// Locked has the memory that was page-locked before the first step.
	Locked     *LockedMemory `json:"locked_memory,omitempty"`
	Evaluation string        `json:"evaluation"`
	// AutoEpochs is the decision on Options.Epochs Auto; absent where Epochs is a number.
	AutoEpochs *AutoEpochs `json:"auto_epochs,omitempty"`
	// AutoSettings explains the values in Options that were not given.
	AutoSettings *AutoSettings `json:"auto_settings,omitempty"`
	// AutoStaleness is likewise the decision on Options.Staleness Auto.
	AutoStaleness *AutoStaleness `json:"auto_staleness,omitempty"`
	// BlendRule is the number of the rule by which Options.Mitigate blends memories. It is absent
	// if none are blended, and in runs by the first rule.
	BlendRule int `json:"blend_rule,omitempty"`
	// Workers is the number of workers in the newest part of the run, and Peers names them; absent
	// where there is one.
	Workers int         `json:"workers,omitempty"`
	Peers   []dist.Peer `json:"peers,omitempty"`
	// AutoParallel has the estimates by which a way took the place of AutoParallel. The choice
	// was made when the run began.
	AutoParallel *ParallelChoice `json:"auto_parallel,omitempty"`
	Version      string          `json:"version"`
	Host         Host            `json:"host"`
	Started      time.Time       `json:"started"`
	// Resumed has an entry for each time that the run was continued.
	Resumed []Resumption `json:"resumed,omitempty"`
}

// Resumption is where a run was continued, and by what.
type Resumption struct {
	Updates    int       `json:"updates"` // made by then
	Device     string    `json:"device,omitempty"`
	DeviceName string    `json:"device_name,omitempty"`
	Kernels    string    `json:"kernels"`
	Version    string    `json:"version"`
	Host       Host      `json:"host"`
	Started    time.Time `json:"started"`
}

// Host is the machine of a run.
type Host struct {
	Name string `json:"name"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

// thisHost describes the machine that the process runs on.
func thisHost() Host {
	name, _ := os.Hostname() // empty where it is not known
	return Host{name, runtime.GOOS, runtime.GOARCH, runtime.NumCPU()}
}

// sumLine ends run.json: XXH3-64 of all that stands before it.
func sumLine(before []byte) []byte {
	return fmt.Appendf(nil, ",\n  %q: \"%016x\"\n}\n", recordSum, xxh3.Hash(before))
}

const recordSum = "xxh3"

// errRecordSum is of a run.json that is JSON, and not what was written.
var errRecordSum = errors.New("its checksum differs")

// Encode is r as run.json has it.
func (r *Record) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSuffix(b, []byte("\n}"))
	return append(b, sumLine(b)...), nil
}

// DecodeRecord reads run.json. With errRecordSum it still returns the record as the text has it.
// Earlier versions wrote no checksum. A text without one is taken for theirs if it has no unknown
// key; an unknown key may be a checksum whose name was damaged.
func DecodeRecord(text []byte) (*Record, error) {
	r := new(Record)
	if err := r.decode(text); err != nil {
		return nil, err
	}
	if n := len(text) - len(sumLine(nil)); n > 0 && bytes.Equal(text[n:], sumLine(text[:n])) {
		return r, nil
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if strict.Decode(new(Record)) != nil {
		return r, errRecordSum
	}
	return r, nil
}

// decode reads the JSON of a record.
func (r *Record) decode(text []byte) error {
	err := json.Unmarshal(text, r)
	if err == nil && r.Seal == "" {
		err = errors.New("no dataset seal in it")
	}
	if err == nil {
		err = disk.Options{Costs: r.Costs}.Validate()
	}
	r.Options.Cache.Costs = r.Costs
	return err
}

// readRecord returns the record of the run in d, or nil if no run has begun. It takes run.json,
// which is the newer one, and checks that its options equal the options of the newest
// checkpoint. If run.json is missing, it takes the record of the checkpoint.
func (d *Dir) readRecord() (*Record, error) {
	text, err := readFile(d.fs, d.File(RecordFile))
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	saved, from, err := d.savedRecord()
	if err != nil {
		return nil, err
	}
	if missing {
		switch names, err := d.Checkpoints(); {
		case saved != nil:
			d.found = fmt.Sprintf("%s is missing; the options are those of %s", d.File(RecordFile), from)
		case err != nil || len(names) > 0:
			return nil, errors.Join(err, fmt.Errorf("run %s: %s is missing, and no checkpoint has the options of the run; restore it, "+
				"or begin another run with {run}", d.path, RecordFile))
		}
		return saved, nil
	}
	r, err := DecodeRecord(text)
	if saved == nil {
		if err != nil {
			err = fmt.Errorf("run %s: %s is damaged: %w; restore it, or begin another run with {run}", d.path, RecordFile, err)
		}
		return r, err
	}
	differs := ""
	if r != nil {
		differs = r.Options.differs(saved.Options)
	}
	instead := fmt.Sprintf("remove %s, and {resume} takes the options from %s", RecordFile, from)
	switch {
	case differs != "" && err == nil:
		return nil, fmt.Errorf("run %s: %s; remove %s or %s, whichever is not of this run", d.path, differs, RecordFile, from)
	case differs != "":
		return nil, fmt.Errorf("run %s: %s; %s", d.path, differs, instead)
	case err != nil:
		return nil, fmt.Errorf("run %s: %s is damaged: %w; %s", d.path, RecordFile, err, instead)
	}
	return r, nil
}

// savedRecord is the record in the newest checkpoint that can be read, and the name of its file. It
// is nil where there is no such checkpoint, or an earlier version wrote it.
func (d *Dir) savedRecord() (r *Record, from string, err error) {
	from, s, err := d.LoadNewest(func(error) error { return nil })
	if err != nil || s == nil {
		return nil, "", err
	}
	r, err = recordIn(s.Meta)
	return r, from, err
}

// RecordKey is the key of the record in a checkpoint's metadata.
const RecordKey = "gnnstore.run"

// recordIn reads the record from a checkpoint's metadata. It returns nil if that is of an earlier
// version.
func recordIn(meta map[string]string) (*Record, error) {
	text, ok := meta[RecordKey]
	if !ok {
		return nil, nil
	}
	r := new(Record)
	if err := r.decode([]byte(text)); err != nil {
		return nil, fmt.Errorf("no options to go on with: %s: %w; remove the file to resume from the one before it", RecordKey, err)
	}
	return r, nil
}
