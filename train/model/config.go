package model

import (
	"errors"
	"slices"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Config describes a network.
type Config struct {
	Kind    Kind    `json:"model"`
	Layers  int     `json:"layers"`  // 0: rows of the input are the network's, as they are
	Hidden  int     `json:"hidden"`  // width of a hidden row; for GAT, of all heads together
	Dropout float64 `json:"dropout"` // of each layer's input but the first's
	// InputDropout is the rate for feature rows.
	InputDropout float64 `json:"input_dropout"`
	Norm         string  `json:"norm"` // between layers: "layer", "none"
	// Heads is the number of heads of the hidden layers of GAT, RGAT and HGT, which divides Hidden.
	// Other networks have none. AttnDropout is the dropout rate of attention in these layers and in
	// the last layer.
	Heads       int     `json:"heads"`
	AttnDropout float64 `json:"attn_dropout"`
	// Bases is the number of basis matrices of RGCN: each relation's matrix is a weighted sum of
	// them. Default 0: each relation has a matrix of its own.
	Bases int `json:"bases"`
	// LabelInput is the number of columns in which the labels of training nodes are input: see
	// Labels. Default 0: labels are no input.
	LabelInput int `json:"label_input"`
	// Decoder scores links between the rows that the last layer makes, or with Shape.EdgeOut
	// classes of edges. Default: none, and these rows are logits.
	Decoder Decoder `json:"decoder,omitempty"`
	// Margin is the score of a link without distance, for decoders TransE and RotatE: the γ of Sun
	// et al. (2019).
	Margin float64 `json:"margin,omitempty"`
}

// Validate reports every problem.
func (c Config) Validate() error {
	var errs sample.Problems
	fail := errs.If
	rate := func(option string, p float64) {
		fail(!(p >= 0 && float32(p) < 1), "%s %v: at least 0 and below 1", option, p)
	}
	fail(!slices.Contains(Kinds, c.Kind), "{model} %s: there are %s; of streams learn %s", c.Kind, sample.Names(Kinds), sample.Names(TemporalKinds))
	fail(c.Layers < 0 || c.Layers > 64, "{layers} %d: from 0, for rows as they are, to 64", c.Layers)
	fail(c.Hidden < 1 || c.Hidden > 1<<16, "{hidden} %d: from 1 to %d", c.Hidden, 1<<16)
	rate("{dropout}", c.Dropout)
	rate("{input_dropout}", c.InputDropout)
	fail(c.Norm != "layer" && c.Norm != "none", "{norm} %s: there are layer and none", c.Norm)
	if validate := c.Kind.network().validate; validate != nil {
		errs = append(errs, validate(c))
	}
	rate("{attn_dropout}", c.AttnDropout)
	fail(c.LabelInput < 0 || c.LabelInput > 1<<16, "{label_input} %d: at least 0, for none, and at most %d columns", c.LabelInput, 1<<16)
	fail(c.LabelInput > 0 && slices.Contains(Kinds, c.Kind) && !c.Kind.network().labels,
		"{label_input} %d: {model} %s has no place for labels; take %s", c.LabelInput, c.Kind, sample.Names(labelled()))
	fail(c.Decoder != "" && !slices.Contains(Decoders, c.Decoder) && !slices.Contains(EdgeDecoders, c.Decoder),
		"{decoder} %s: there are %s; of classes of edges %s", c.Decoder, sample.Names(Decoders), sample.Names(EdgeDecoders))
	fail(!(c.Margin >= 0 && c.Margin < 1e6), "{margin} %v: above 0 and below 1e6", c.Margin)
	fail(c.Margin != 0 && !c.Decoder.Distance(), "{margin} %v: it goes with {decoder} transe or rotate", c.Margin)
	return errors.Join(errs...)
}
