package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/graph"
)

// submissionModes are the challenge's names of its test nodes: the test part of the split that is
// named after the hyphen.
var submissionModes = []string{"test-dev", "test-challenge", "test-whole"}

// checkSubmission refuses flags that do not go with --format ogb-lsc.
func (o *predictOptions) checkSubmission() error {
	switch {
	case export.Format(o.format) != export.OGBLSC:
		return nil
	case o.what != "" && o.what != graph.Classes:
		return fmt.Errorf("--what %s: --format ogb-lsc is of classes", o.what)
	case !slices.Contains(submissionModes, o.nodes):
		return fmt.Errorf("--nodes %s: of --format ogb-lsc there are %s", o.nodes, setting.OneOf(submissionModes))
	}
	return nil
}

// submission has the nodes of a mode of the challenge, ascending, and their places in its lists.
type submission struct {
	nodes   []uint32
	place   map[uint32]int
	classes []int16
	numbers []int16 // the challenge's numbers of the classes
}

// newSubmission finds the nodes of a mode. The challenge's lists ascend by papers, and three of
// each five of test-whole are test-dev, by their places there. It refuses a dataset with other
// parts: its order of papers is not the challenge's.
func newSubmission(n *graph.Network, mode string) (*submission, error) {
	d := n.Data()
	if n.Links() || n.Edges() || n.Several() || n.Numbers() {
		return nil, errors.New("--format ogb-lsc: the network does not tell one class a node")
	}
	ids := d.IDs(d.Target)
	if ids.HasNames() {
		return nil, errors.New("--format ogb-lsc: nodes of MAG240M are known by numbers, and these by texts")
	}
	list := func(split string) (nodes []uint32, err error) {
		nodes, err = d.PartOf(split, "test")
		if err == nil {
			err = store.Guard(func() error {
				slices.SortFunc(nodes, func(a, b uint32) int { return int(ids.Original(a) - ids.Original(b)) })
				return nil
			})
		}
		return nodes, err
	}
	nodes, err := list(strings.TrimPrefix(mode, "test-"))
	if err != nil {
		return nil, err
	}
	whole, err := list("whole")
	if err != nil {
		return nil, err
	}
	var want []uint32
	for i, v := range whole {
		if mode == "test-whole" || (i%5 < 3) == (mode == "test-dev") {
			want = append(want, v)
		}
	}
	if !slices.Equal(nodes, want) {
		return nil, fmt.Errorf("--nodes %s: its nodes are not those that the challenge takes of an ascending test-whole by their places, so their order "+
			"there is not known; predict them as npy, and put them in the order of split_dict.pt", mode)
	}
	s := &submission{nodes: slices.Sorted(slices.Values(nodes)), place: map[uint32]int{}, classes: make([]int16, len(nodes))}
	for i, v := range nodes {
		s.place[v] = i
	}
	for c := range d.Labels.Classes() {
		number := c
		if names := d.Labels.Label.ClassNames; len(names) > 0 {
			if number, err = strconv.Atoi(names[c]); err != nil {
				return nil, fmt.Errorf("--format ogb-lsc: class %s has a name that is no number, as those of MAG240M are", names[c])
			}
		}
		if number < math.MinInt16 || number > math.MaxInt16 {
			return nil, fmt.Errorf("--format ogb-lsc: class %d does not fit the 16 bits that the challenge has for one", number)
		}
		s.numbers = append(s.numbers, int16(number))
	}
	return s, nil
}

// write has fill add the classes of the nodes, and writes them.
func (s *submission) write(dir, mode string, force bool, fill func(add func([]store.NodeID, []float32) error) error) (*export.RowsReport, error) {
	err := fill(func(nodes []store.NodeID, rows []float32) error {
		for i, v := range nodes {
			s.classes[s.place[v]] = s.numbers[int(rows[i])]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return export.WriteSubmission(dir, mode, s.classes, force)
}
