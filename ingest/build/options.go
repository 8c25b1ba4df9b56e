package build

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// Order selects how a dataset numbers its nodes.
type Order string

const (
	OrderDegree   Order = "degree"   // nodes that appear in most neighbour lists first, ties as given
	OrderAccess   Order = "access"   // nodes that training from the first split's seeds is expected to read most first
	OrderOriginal Order = "original" // as given
)

// SelfLoops selects what happens to edges from a node to itself, in relations from a node type to
// itself.
type SelfLoops string

const (
	SelfLoopsKeep SelfLoops = "keep" // as they are
	SelfLoopsDrop SelfLoops = "drop" // none is stored
	SelfLoopsAdd  SelfLoops = "add"  // each node gets exactly one, in place of those it has
)

// Duplicates selects what happens to edges that occur more than once in one direction.
type Duplicates string

const (
	DuplicatesKeep  Duplicates = "keep"  // as they are
	DuplicatesMerge Duplicates = "merge" // become one, and are refused where their values differ
	// The others merge equal edges as well. The edge has the number of the first, and this value:
	DuplicatesFirst Duplicates = "first" // as read
	DuplicatesSum   Duplicates = "sum"
	DuplicatesMax   Duplicates = "max"
	DuplicatesMean  Duplicates = "mean"
)

// DType is the type of stored features.
type DType string

const (
	F16 DType = "f16"
	F32 DType = "f32"
)

// Normalize selects what happens to the rows of node features that are read, before they are
// stored.
type Normalize string

const (
	NormalizeNone Normalize = "none" // as they are
	NormalizeRow  Normalize = "row"  // divided by the sum of their magnitudes, as GCN's authors do; rows of zeros stay
)

// Options configure a [Build]. The zero value works for every source that has features.
type Options struct {
	Undirected bool       // store the reverse of every edge as well, in relations from a node type to itself; default as given
	Reverse    bool       // store a relation rev_NAME the other way for each that has no reverse yet; default as given
	Directed   bool       // take edges as directed, though they look like an undirected graph
	OneWay     bool       // add no reverses, though the source's Schema.BackWanted asks for them
	SelfLoops  SelfLoops  // default SelfLoopsKeep
	Duplicates Duplicates // default DuplicatesKeep, which is DuplicatesMerge for edges with reverses
	EdgeIDs    bool       // store the number of each edge as read, as column "id"; with a table of edges it is anyhow
	SkipBad    int64      // edges whose ends are no nodes that may be passed over, counted; default none

	// Memory is the bytes that Build stays within, LeastMemory at least; the source's files in the
	// page cache are not counted. Default 1 GiB.
	Memory int64
	// Tmp is an existing directory for what does not fit in memory; default one inside the
	// unfinished dataset.
	Tmp string

	Order     Order     // default OrderDegree
	DType     DType     // default F16
	Normalize Normalize // default NormalizeNone
	Clamp     bool      // values that float16 cannot hold become the nearest it can and are counted; default: they are refused

	// Features made instead of read, or for node types that have none: "degree", "random:D",
	// "fastrp:D", "mean" or "none"; see [Build]. Default: the source's own.
	Features string
	// Counts asks for columns with the number of a node's edges, by relation and direction, behind
	// the columns of its first table. It is "all", for types with features, "none", or names of
	// types, separated by commas. Default: what the source asks for.
	Counts string
	// LikeAggregates has the names of such columns in the dataset to follow, by node type. It
	// overrides Counts. Default nil: no dataset is followed.
	LikeAggregates map[string][]string
	// AllowLeak names columns of features that may tell the label: see [Build]. Default none.
	AllowLeak []string
	// Like names the dataset that the source follows: see ingest.Follow. Its columns were accepted
	// there, so columns that may tell the label are noted and not refused. Default none.
	Like string
	// Split is "given", "random:a/b/c" or "per-class:t/v"; see [Build]. Default: given where the
	// source has one, else random:0.6/0.2/0.2, which the Report notes. Of a stream it is "given" or
	// "time:a/b/c", default time:0.7/0.15/0.15.
	Split string

	// EdgeFeatures are made for the events of streams: "random:D", independent standard normal
	// values. Default none.
	EdgeFeatures string
	// TimeScale multiplies differences of the times of a stream before networks see them. Default
	// 1; but where all times together span less than 1e4 units, the factor that makes the median of
	// the gaps between the events of a node 1e3.
	TimeScale float64

	// EdgeSplit holds edges out, for link prediction: "random:a/b/c" or "time:COLUMN:a/b/c" of all
	// relations, or "REL=random:a/b/c" of the relations of one name or key; several of these may be
	// given. See [Build]. Default: none.
	EdgeSplit []string

	Seed uint64 // of made features and splits; default 1
	// Name is the name of the dataset. store.CleanName must not change it. Default: the source's
	// name, cleaned.
	Name string
	// Progress is called some ten times a second, by one goroutine at a time. Default: nil.
	Progress func(ingest.Progress)
	// Text puts the user's names in place of the option keys in notes, which the dataset records:
	// see package ingest. Default: texts stay as they are.
	Text func(string) string
	FS   vfs.FS // where the dataset goes; default the disk

	test hooks
}

// maxMadeDim bounds the columns of made features: 64 KiB a row as float32.
const maxMadeDim = 1 << 14

// Validate reports every problem, a line each.
func (o *Options) Validate() error {
	_, err := o.effective()
	return err
}

// effective fills the defaults on a copy and reads the small languages of Features and Split.
func (o *Options) effective() (*plan, error) {
	p := &plan{Options: *o}
	p.Order, p.DType = cmp.Or(p.Order, OrderDegree), cmp.Or(p.DType, F16)
	p.Normalize = cmp.Or(p.Normalize, NormalizeNone)
	p.SelfLoops, p.Duplicates = cmp.Or(p.SelfLoops, SelfLoopsKeep), cmp.Or(p.Duplicates, DuplicatesKeep)
	p.Memory, p.Seed, p.FS = cmp.Or(p.Memory, defaultMemory), cmp.Or(p.Seed, 1), cmp.Or(p.FS, vfs.Default)
	var errs []error
	if p.Order != OrderDegree && p.Order != OrderAccess && p.Order != OrderOriginal {
		errs = append(errs, fmt.Errorf("{order} %q: there is no such order; choose degree, access or original", p.Order))
	}
	if p.SelfLoops != SelfLoopsKeep && p.SelfLoops != SelfLoopsDrop && p.SelfLoops != SelfLoopsAdd {
		errs = append(errs, fmt.Errorf("{self_loops} %q: choose keep, drop or add", p.SelfLoops))
	}
	if !slices.Contains([]Duplicates{DuplicatesKeep, DuplicatesMerge, DuplicatesFirst, DuplicatesSum, DuplicatesMax, DuplicatesMean}, p.Duplicates) {
		errs = append(errs, fmt.Errorf("{duplicates} %q: choose keep, merge, first, sum, max or mean", p.Duplicates))
	}
	if p.SkipBad < 0 {
		errs = append(errs, fmt.Errorf("{skip_bad} %d: choose a number of rows, or 0 for none", p.SkipBad))
	}
	if p.Memory < LeastMemory {
		errs = append(errs, fmt.Errorf("{memory} %d: %d MiB is the least that works, and every node adds a few bytes to it", p.Memory, LeastMemory>>20))
	}
	if p.DType != F16 && p.DType != F32 {
		errs = append(errs, fmt.Errorf("{dtype} %q: features are not stored so; choose f16 or f32", p.DType))
	}
	if p.Normalize != NormalizeNone && p.Normalize != NormalizeRow {
		errs = append(errs, fmt.Errorf("{normalize} %q: choose none or row", p.Normalize))
	}
	if clean := store.CleanName(p.Name); p.Name != "" && p.Name != clean {
		errs = append(errs, fmt.Errorf("{name} %q: a dataset's name is up to 100 letters a-z, digits, _, - and ., and does not start with a .; as in %s", p.Name, clean))
	}
	if p.Text == nil {
		p.Text = func(s string) string { return s }
	}
	var err error
	if p.features, err = parseFeatures(o.Features); err != nil {
		errs = append(errs, err)
	}
	if p.split, err = parseSplit(o.Split); err != nil {
		errs = append(errs, err)
	}
	if p.eventDim, err = parseEdgeFeatures(o.EdgeFeatures); err != nil {
		errs = append(errs, err)
	}
	if s := o.TimeScale; s != 0 && !(s > 0 && s <= math.MaxFloat64) {
		errs = append(errs, fmt.Errorf("{time_scale} %v: differences of times are multiplied with it; choose a number above 0, or auto", s))
	}
	for _, s := range o.EdgeSplit {
		e, err := parseEdgeSplit(s)
		if err != nil {
			errs = append(errs, err)
		} else if slices.ContainsFunc(p.edgeSplitPlans, func(o edgeSplitPlan) bool { return o.relation == e.relation }) {
			errs = append(errs, fmt.Errorf("{edge_split} %q: there is one for the same relations before it; leave one out", s))
		}
		p.edgeSplitPlans = append(p.edgeSplitPlans, e)
	}
	return p, errors.Join(errs...)
}

// plan is Options with the defaults filled and the texts read.
type plan struct {
	Options
	features featurePlan
	split    splitPlan
	eventDim int // columns of the features that are made for events; 0: none are

	edgeSplitPlans []edgeSplitPlan
}

// featurePlan is a read Options.Features.
type featurePlan struct {
	kind string // "", "degree", "random", "fastrp", "mean", "none"
	dim  int
}

const featureChoices = "degree, random:D or fastrp:D, with D columns, as in fastrp:128; or none, or mean"

func parseFeatures(s string) (featurePlan, error) {
	kind, arg, _ := strings.Cut(s, ":")
	switch {
	case s == "":
		return featurePlan{}, nil
	case s == "degree":
		return featurePlan{kind, degreeDim}, nil
	case s == "mean" || s == "none":
		return featurePlan{kind: kind}, nil
	case kind == "random" || kind == "fastrp":
		dim, err := strconv.Atoi(arg)
		if err != nil || dim < 1 || dim > maxMadeDim {
			return featurePlan{}, fmt.Errorf("{features} %q: D is a number of columns from 1 to %d, as in %s:128", s, maxMadeDim, kind)
		}
		return featurePlan{kind, dim}, nil
	}
	return featurePlan{}, fmt.Errorf("{features} %q: there are no such features; choose %s", s, featureChoices)
}

// parseEdgeFeatures returns the number of columns of made features of events, 0 for none.
func parseEdgeFeatures(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	p, err := parseFeatures(s)
	if err != nil || p.kind != "random" {
		return 0, fmt.Errorf("{edge_features} %q: features of events are made as random:D, with D columns from 1 to %d", s, maxMadeDim)
	}
	return p.dim, nil
}

// splitPlan is a read Options.Split.
type splitPlan struct {
	kind       string     // "", "given", "random", "per-class", "time"
	fractions  [3]float64 // of random and time: train, valid, test
	train, val int        // of per-class: nodes a class
}

const splitChoices = "given, random:a/b/c with the parts' fractions, as in random:0.6/0.2/0.2, or per-class:t/v with numbers of nodes, as in per-class:20/30; of a stream time:a/b/c"

func parseSplit(s string) (splitPlan, error) {
	kind, arg, _ := strings.Cut(s, ":")
	parts := strings.Split(arg, "/")
	switch {
	case s == "" || s == "given":
		return splitPlan{kind: s}, nil
	case kind == "random" || kind == "time":
		p := splitPlan{kind: kind}
		sum := 0.0
		ok := len(parts) == 3
		for i := 0; ok && i < 3; i++ {
			f, err := strconv.ParseFloat(parts[i], 64)
			ok = err == nil && f > 0 && !math.IsInf(f, 0)
			p.fractions[i] = f
			sum += f
		}
		if kind == "time" && (!ok || math.Abs(sum-1) > 1e-9) {
			return splitPlan{}, fmt.Errorf("{split} %q: want three positive shares of the time that sum to 1, as in time:0.7/0.15/0.15", s)
		}
		if !ok || sum > 1+1e-9 {
			return splitPlan{}, fmt.Errorf("{split} %q: want three positive fractions that sum to at most 1, as in random:0.6/0.2/0.2", s)
		}
		return p, nil
	case kind == "per-class":
		p := splitPlan{kind: kind}
		var err, err2 error
		if len(parts) == 2 {
			p.train, err = strconv.Atoi(parts[0])
			p.val, err2 = strconv.Atoi(parts[1])
		}
		if err != nil || err2 != nil || p.train < 1 || p.val < 1 || p.train > math.MaxInt32 || p.val > math.MaxInt32 {
			return splitPlan{}, fmt.Errorf("{split} %q: want the training and validation nodes of each class, as in per-class:20/30", s)
		}
		return p, nil
	}
	return splitPlan{}, fmt.Errorf("{split} %q: there is no such split; choose %s", s, splitChoices)
}

func (s splitPlan) String() string {
	switch s.kind {
	case "random", "time":
		return fmt.Sprintf("%s:%g/%g/%g", s.kind, s.fractions[0], s.fractions[1], s.fractions[2])
	case "per-class":
		return fmt.Sprintf("per-class:%d/%d", s.train, s.val)
	}
	return s.kind
}

// record returns the options that the dataset records, by flag.
func (p *plan) record() map[string]string {
	all := map[string]string{
		"undirected": strconv.FormatBool(p.Undirected),
		"reverse":    strconv.FormatBool(p.Reverse),
		"self-loops": string(p.SelfLoops),
		"duplicates": string(p.Duplicates),
		"edge-ids":   strconv.FormatBool(p.EdgeIDs),
		"skip-bad":   strconv.FormatInt(p.SkipBad, 10),
		"order":      string(p.Order),
		"dtype":      string(p.DType),
		"normalize":  string(p.Normalize),
		"clamp":      strconv.FormatBool(p.Clamp),
		"features":   p.Features,
		"split":      p.split.String(),
		"seed":       strconv.FormatUint(p.Seed, 10),
	}
	if p.Counts != "" {
		all["counts"] = p.Counts
	}
	if len(p.EdgeSplit) > 0 {
		all["edge-split"] = strings.Join(p.EdgeSplit, " ")
	}
	if len(p.AllowLeak) > 0 {
		all["allow-leak"] = strings.Join(p.AllowLeak, " ")
	}
	if p.EdgeFeatures != "" {
		all["edge-features"] = p.EdgeFeatures
	}
	if p.TimeScale != 0 {
		all["time-scale"] = strconv.FormatFloat(p.TimeScale, 'g', -1, 64)
	}
	return all
}
