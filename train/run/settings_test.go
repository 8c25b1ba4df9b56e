package run

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/task"
)

// allLeft returns options as if none of them had been given.
func allLeft() Options {
	o := DefaultOptions()
	o.Left = map[string]bool{}
	for _, key := range []string{"lr", "hidden", "dropout", "input_dropout", "weight_decay", "epochs", "eval_every", "epoch_steps", "batch", "decoder", "negatives",
		"norm", "loss", "corrupt", "n3", "adversarial", "reciprocal"} {
		o.Left[key] = true
	}
	return o
}

// TestSettingsGoBySize: few labels, dense links and many relations have settings of their own, and
// nothing else has.
func TestSettingsGoBySize(t *testing.T) {
	linked := func(layers int) Options {
		o := allLeft()
		o.Task, o.Layers, o.Fanouts = LinkTask, layers, o.Fanouts[:layers]
		return o.WithDefaults()
	}
	for name, c := range map[string]struct {
		o      Options
		of     Size
		reason string
	}{
		"Cora": {allLeft(), Size{Examples: 140, Nodes: 2708}, "settings auto: 140 labelled training nodes are few: {lr} 0.01, {hidden} 64, {dropout} 0.6, " +
			"{input_dropout} 0.6, {weight_decay} 0.0005, {eval_every} 5"},
		"ogbn-arxiv":    {allLeft(), Size{Examples: 90941, Nodes: 169343}, ""},
		"1001 nodes":    {allLeft(), Size{Examples: 1001, Nodes: 2000}, ""},
		"several types": {allLeft(), Size{Examples: 140, Nodes: 2708, Typed: true}, ""},
		"MUTAG": {allLeft(), Size{Examples: 272, Nodes: 23644, Typed: true, Bare: true}, "settings auto: 272 labelled training nodes are few, and there are no features: " +
			"{lr} 0.01, {hidden} 16, {norm} none, {epochs} 50"},
		"MUTAG, with validation": {allLeft(), Size{Examples: 272, Nodes: 23644, Typed: true, Bare: true, Validated: true}, "settings auto: 272 labelled training nodes " +
			"are few, and there are no features: {lr} 0.01, {hidden} 16, {norm} none"},
		"ogbl-ddi": {linked(2), Size{Examples: 2135822, Nodes: 4267, Pairs: 4267 * 4267, Relations: 1, Learnt: true}, "settings auto: 12 % of the pairs that " +
			"links could join are links: {negatives} filtered:1; 2135822 links of 4267 nodes, whose rows are learnt, are dense: {decoder} mlp, {norm} none, {lr} 0.005, {batch} 8534"},
		"dense, and large":       {linked(2), Size{Examples: 120_000_000, Nodes: 200_000, Pairs: 200_000 * 200_000, Relations: 1, Learnt: true}, "settings auto: 120000000 links of 200000 nodes, whose rows are learnt, are dense: {decoder} mlp, {norm} none, {lr} 0.005, {batch} 16384"},
		"dense, with features":   {linked(2), Size{Examples: 2135822, Nodes: 4267, Pairs: 4267 * 4267, Relations: 1}, "settings auto: 12 % of the pairs that links could join are links: {negatives} filtered:1"},
		"sparse":                 {linked(2), Size{Examples: 10556, Nodes: 2708, Pairs: 2708 * 2708, Relations: 1, Learnt: true}, ""},
		"dense, without network": {linked(0), Size{Examples: 2135822, Nodes: 4267, Pairs: 4267 * 4267, Relations: 1, Learnt: true}, "settings auto: 12 % of the pairs that links could join are links: {negatives} filtered:1"},
		"UMLS": {linked(0), Size{Examples: 1959, Nodes: 135, Pairs: 135 * 135, Relations: 46, Learnt: true}, "settings auto: links of 46 relations: {decoder} complex, {n3} 0.1, {reciprocal} true, " +
			"{negatives} all, {loss} ce, {corrupt} both"},
		"a large knowledge graph": {linked(0), Size{Examples: 1e8, Nodes: 1e7, Relations: 46, Learnt: true}, "settings auto: links of 46 relations: {decoder} complex, {n3} 0.1, " +
			"{reciprocal} true, {negatives} shared:64, {loss} ce, {corrupt} both"},
	} {
		got := c.o.Settle(c.of)
		if c.reason == "" {
			require.Nil(t, got, name)
			continue
		}
		require.Equal(t, &AutoSettings{c.reason}, got, name)
		require.NoError(t, c.o.Validate(), name)
	}
}

// textOf returns an option as its flag would read it.
func textOf(o *Options, key string) string {
	i := slices.IndexFunc(Table, func(d setting.Of[Options]) bool { return d.Key == key })
	return Table[i].In(o).String()
}

// TestGivenSettingsStay: a value that was given stays, even where it is the default.
func TestGivenSettingsStay(t *testing.T) {
	small, dense := Size{Examples: 140, Nodes: 2708}, Size{Examples: 2135822, Nodes: 4267, Relations: 1, Learnt: true}
	for _, key := range []string{"lr", "hidden", "dropout", "input_dropout", "weight_decay", "eval_every"} {
		o, without := allLeft(), allLeft()
		delete(o.Left, key)
		before := textOf(&o, key)
		require.NotContains(t, o.Settle(small).Reason, "{"+key+"} ")
		require.Equal(t, before, textOf(&o, key))
		require.Contains(t, without.Settle(small).Reason, "{"+key+"} ")
	}
	o := allLeft()
	o.Task, o.Decoder = LinkTask, model.Dot
	o = o.WithDefaults()
	delete(o.Left, "decoder")
	o.Settle(dense)
	require.Equal(t, model.Dot, o.Decoder)

	kgSize := Size{Examples: 1959, Nodes: 135, Pairs: 135 * 135, Relations: 46, Learnt: true}
	for decoder, want := range map[model.Decoder]string{
		model.DistMult: "{negatives} all, {loss} ce, {corrupt} both",
		model.TransE:   "{negatives} shared:128, {adversarial} 0.5, {corrupt} both",
		model.RotatE:   "{negatives} shared:128, {adversarial} 0.5, {corrupt} both",
	} {
		kg := allLeft()
		kg.Task, kg.Layers, kg.Fanouts, kg.Decoder = LinkTask, 0, nil, decoder
		kg = kg.WithDefaults()
		delete(kg.Left, "decoder")
		require.Equal(t, "settings auto: links of 46 relations: "+want, kg.Settle(kgSize).Reason)
		require.NoError(t, kg.Validate())
	}
	for key, set := range map[string]func(o *Options){
		"corrupt":   func(o *Options) { o.Corrupt = task.CorruptDst },
		"negatives": func(o *Options) { o.Negatives = "uniform:2" },
		"loss":      func(o *Options) { o.Loss = task.BCE },
	} {
		kg := allLeft()
		kg.Task, kg.Layers, kg.Fanouts = LinkTask, 0, nil
		set(&kg)
		kg = kg.WithDefaults()
		delete(kg.Left, key)
		before := textOf(&kg, key)
		require.NotContains(t, kg.Settle(kgSize).Reason, "{"+key+"} ")
		require.Equal(t, before, textOf(&kg, key))
		require.NoError(t, kg.Validate(), key)
	}

	for dist, want := range map[string]string{"": task.All, "local:2": task.Shared + ":64"} {
		kg := allLeft()
		kg.Task, kg.Layers, kg.Fanouts, kg.Decoder, kg.Dist = LinkTask, 0, nil, model.ComplEx, dist
		kg = kg.WithDefaults()
		require.NotNil(t, kg.Settle(kgSize))
		require.Equal(t, want, kg.Negatives, "several workers cannot score all nodes")
		require.NoError(t, kg.Validate())
	}

	o = DefaultOptions()
	require.Nil(t, o.Settle(small), "options of a program, which has given all of them")
	o = allLeft()
	o.Epochs = 100
	require.NotContains(t, o.Settle(small).Reason, "eval_every")
}
