package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The kinds of datasets. Those of 100 steps have as many nodes or events to train on.
const (
	papers = "papers"
	mag    = "mag"
	events = "events"
	large  = "large"
	deep   = "deep"
)

// generated has the arguments of generate for each kind: on a GPU, and for small runs.
var generated = map[string][2]string{
	papers: {
		"papers100m --nodes 50k --undirected --train 0.6 --valid 0.05 --test 0.05",
		"papers100m --nodes 20k --undirected --train 0.6 --valid 0.05 --test 0.05",
	},
	mag: {
		"mag240m --nodes 40k --edges 240k --dim 128 --train 0.9 --valid 0.02 --test 0.02 " +
			"--undirected --reverse --features mean",
		"mag240m --nodes 15k --edges 90k --dim 64 --train 0.9 --valid 0.02 --test 0.02 " +
			"--undirected --reverse --features mean",
	},
	events: {"temporal --edges 30k", "temporal --edges 10k"},
	large: {
		"papers100m --scale 0.05 --undirected --train 0.2 --valid 0.001 --test 0.001",
		"papers100m --nodes 20k --undirected --train 0.6 --valid 0.05 --test 0.05",
	},
	deep: {
		"papers100m --nodes 10M --undirected --train 0.2 --valid 0.001 --test 0.001",
		"papers100m --nodes 20k --undirected --train 0.6 --valid 0.05 --test 0.05",
	},
}

// making is a dataset that a program makes beside the stages.
type making struct {
	done chan struct{}
	err  error // set before done is closed
}

// make begins to make a dataset, unless that was begun. ctx ends it.
func (v *visit) make(ctx context.Context, kind string) *making {
	if m := v.makings[kind]; m != nil {
		return m
	}
	if v.makings == nil {
		v.makings = map[string]*making{}
	}
	m := &making{done: make(chan struct{})}
	v.makings[kind] = m
	words := strings.Fields(generated[kind][v.pick(0, 1)])
	args := append([]string{"generate", words[0], kind + ".gnn"}, words[1:]...)
	go func() {
		defer close(m.done)
		t := &turn{visit: v, ctx: ctx}
		_, m.err = t.command(v.program("gnnstore-cuda"), args...)
	}()
	return m
}

// at returns the path of a dataset in v.data, or "" if that has none of this kind.
func (v *visit) at(kind string) string {
	if v.data == "" {
		return ""
	}
	path := filepath.Join(v.data, kind+".gnn")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// dataset returns the path of a dataset, once it is there.
func (t *turn) dataset(kind string) (string, error) {
	if path := t.at(kind); path != "" {
		return path, nil
	}
	m := t.make(t.ctx, kind)
	select {
	case <-m.done:
		return kind + ".gnn", m.err
	case <-t.ctx.Done():
		return "", fmt.Errorf("%s.gnn was not made in time", kind)
	}
}

// awaitData waits for datasets that are still being made.
func (v *visit) awaitData() {
	for _, m := range v.makings {
		<-m.done
	}
}

// pick returns large, and small for small runs.
func (v *visit) pick(large, small int) int {
	if v.small {
		return small
	}
	return large
}
