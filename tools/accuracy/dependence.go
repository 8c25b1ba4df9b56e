package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// judgedKappa is the largest κ for which a task's maxLoss holds.
const judgedKappa = 256

// dependenceTasks have splits and batches that make an epoch of 83 to 91 steps: on public splits it
// is one or two, and a κ of 16 would last longer than most runs. Their fanouts stay below the mean
// degrees (14, 9, 15 and 36), or little would be drawn.
var dependenceTasks = []task{
	{name: "ogbn_arxiv", model: "sage", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, epochs: "16", maxLoss: 0.005,
		settings: paired("10,10", "--hidden", "128", "--batch", "1000", "--eval-every", "4")},
	{name: "coauthor_cs", model: "sage", raw: coauthor, flags: random, splits: true, epochs: "8",
		settings: paired("5,5", "--hidden", "64", "--batch", "128", "--eval-every", "4")},
	{name: "facebook", model: "sage", raw: pages, flags: facebook, splits: true, epochs: "8",
		settings: paired("5,5", "--hidden", "64", "--batch", "160", "--eval-every", "4")},
	{name: "amazon_computers", model: "sage", raw: computers, flags: random, splits: true, epochs: "12",
		settings: paired("5,5", "--hidden", "64", "--batch", "100", "--eval-every", "4")},
}

// draws is a way to draw batches. Its dependent is empty for κ = 1, where the two ways are one.
type draws struct{ sampler, dependent, kappa string }

func (d draws) variant() variant {
	v := variant{name: strings.TrimSpace(d.sampler+" "+d.dependent) + " κ " + d.kappa, flags: []string{"--sampler", d.sampler, "--kappa", d.kappa}}
	if d.dependent != "" {
		v.flags = append(v.flags, "--dependent", d.dependent)
	}
	return v
}

// drawsOf are all of three comma-separated lists, each once: of a sampler first κ = 1, with which
// its others are paired.
func drawsOf(samplers, dependents, kappas string) ([]draws, error) {
	var all []draws
	for sampler := range strings.SplitSeq(samplers, ",") {
		all = append(all, draws{sampler: sampler, kappa: "1"})
		for dependent := range strings.SplitSeq(dependents, ",") {
			if dependent != run.Nested && dependent != run.Smoothed {
				return nil, fmt.Errorf("-dependent %s: %s, %s or both", dependents, run.Nested, run.Smoothed)
			}
			config := sample.Config{Kind: sample.Kind(sampler), Smoothed: dependent == run.Smoothed, Walk: sample.DefaultWalk}
			if err := config.Validate(); err != nil {
				return nil, err
			}
			for kappa := range strings.SplitSeq(kappas, ",") {
				k, err := sample.ParseKappa(kappa)
				if err != nil {
					return nil, fmt.Errorf("-kappa %s: %w", kappas, err)
				}
				kappa = sample.KappaText(k)
				if d := (draws{sampler, dependent, kappa}); kappa != "1" && !slices.Contains(all, d) {
					all = append(all, d)
				}
			}
		}
	}
	return all, nil
}

// dependence returns the study of -kappa: dependent minibatches against independent ones.
func dependence(samplers, dependents, kappas string) (*study, error) {
	all, err := drawsOf(samplers, dependents, kappas)
	if err != nil {
		return nil, err
	}
	return &study{
		title: "Accuracy of dependent minibatches", tasks: dependenceTasks,
		flags: "--sampler SAMPLER --kappa KAPPA --dependent DEPENDENT", against: "at κ = 1",
		head: []string{"sampler", "dependent", "κ"},
		tail: []column{{"s a seed", func(c *comparison) string { return fmt.Sprintf("%.1f", mean(c.of, trial.seconds)) }}},
		pairs: func(t task) []pair {
			var pairs []pair
			var independent variant
			for _, d := range all {
				p := pair{of: d.variant(), cells: []string{d.sampler, d.dependent, d.kappa}}
				if d.kappa == "1" {
					independent = p.of
				} else if k, err := strconv.Atoi(d.kappa); err == nil && k <= judgedKappa {
					p.bar.loss = t.maxLoss
				}
				p.than = independent
				pairs = append(pairs, p)
			}
			return pairs
		},
	}, nil
}
