package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/model"
)

var (
	everyPair = flag.Bool("every-pair", false, "have TestCombinations meet every pair, which takes minutes; tools/ci pairs does")
	pairsSeed = flag.Uint64("pairs-seed", 1, "of the combinations that it draws")
	pairShare share
)

func init() { flag.TextVar(&pairShare, "pair-share", share{}, "meet these pairs alone, PART/PARTS") }

// coverer runs combinations.
type coverer struct {
	t     *testing.T
	rng   *rand.Rand
	kinds map[string]*dataKind
	tmp   string
	runs  int
	// barred has choices that a kind of data refuses alone, and clashes pairs that it refuses
	// together. An entry is true if it was tried and refused.
	barred  map[[2]choice]bool
	clashes map[[3]choice]bool
	train   *space
}

// usual has flags that keep a run small. Flags of a combination override them.
var usual = map[string]string{"epochs": "1", "epoch-steps": "2", "batch": "20", "hidden": "8", "eval-nodes": "20", "fanout": "3,2", "seed": "1"}

// fill replaces the placeholders in value by the words of this kind of data.
func (c *coverer) fill(k *dataKind, value string) string {
	for _, word := range slices.SortedFunc(maps.Keys(k.words), func(a, b string) int { return len(b) - len(a) }) {
		value = strings.ReplaceAll(value, word, k.words[word])
	}
	return strings.ReplaceAll(value, "DIR", c.tmp)
}

// said is the result of a command line.
type said struct {
	code   int
	stdout []byte
	lines  []string // the lines on stderr that begin with gnnstore:
	flags  []string // named in these lines
}

var flagPattern = regexp.MustCompile(`--([a-z0-9][a-z0-9-]*)`)

// call runs a command line in this process. A refusal has only lines that begin with gnnstore:, and
// only one unless the command line is malformed.
func (c *coverer) call(args []string) said {
	c.t.Helper()
	c.runs++
	line := "gnnstore '" + strings.Join(args, "' '") + "'"
	if testing.Verbose() {
		fmt.Println(line) // after a panic, this line is the last
	}
	var stdout, stderr bytes.Buffer
	s := said{code: execute(args, &stdout, &stderr)}
	s.stdout = stdout.Bytes()
	if s.code == 0 {
		return s
	}
	for text := range strings.Lines(stderr.String()) {
		if text, ok := strings.CutPrefix(text, "gnnstore: "); ok {
			s.lines = append(s.lines, strings.TrimSpace(text))
		}
		require.NotContains(c.t, text, "panic", line)
		require.NotContains(c.t, text, "goroutine", line)
	}
	require.NotEmpty(c.t, s.lines, "%s: exit %d without a word", line, s.code)
	if s.code == 1 {
		require.Len(c.t, s.lines, 1, line)
	}
	for _, text := range s.lines {
		for _, found := range flagPattern.FindAllStringSubmatch(text, -1) {
			s.flags = append(s.flags, found[1])
		}
	}
	return s
}

// trained is the part of a result that two runs must agree on.
type trained struct {
	Epochs []struct {
		Loss  float64  `json:"loss"`
		Valid *float64 `json:"valid_acc"`
		Steps int      `json:"steps"`
	} `json:"epochs"`
	ParamsXXH3 string `json:"params_xxh3"`
}

var leastPattern = regexp.MustCompile(`the least that works is (\d+) MiB`)

// trainBoth trains with little memory and with plenty. It returns the run with plenty, or its
// refusal.
func (c *coverer) trainBoth(k *dataKind, have []choice) (dir string, s said) {
	args := c.trainArgs(k, have)
	var results []trained
	for _, memory := range []string{"2GiB", "128MiB"} {
		dir = filepath.Join(c.tmp, fmt.Sprintf("run-%d", c.runs))
		s = c.call(append(args, "--memory", memory, "--run", dir))
		if s.code != 0 && memory == "128MiB" {
			least := leastPattern.FindStringSubmatch(strings.Join(s.lines, " "))
			require.NotNil(c.t, least, "%v with %s: %v", args, memory, s.lines)
			require.NoError(c.t, os.RemoveAll(dir))
			s = c.call(append(args, "--memory", least[1]+"MiB", "--run", dir))
			require.Zero(c.t, s.code, "%v with the %s MiB that were said to work: %v", args, least[1], s.lines)
		}
		if s.code != 0 {
			return "", s
		}
		var r trained
		require.NoError(c.t, json.Unmarshal(s.stdout, &r), "%v", args)
		results = append(results, r)
		if memory == "2GiB" {
			continue
		}
		require.NoError(c.t, os.RemoveAll(dir))
	}
	steps := 0
	for _, e := range results[0].Epochs {
		steps += e.Steps
	}
	require.GreaterOrEqual(c.t, steps, 2, "%v", args)
	// Auto depends on the machine's speed, and rest on the memory.
	if !slices.Contains(have, choice{"staleness", "auto"}) && !slices.Contains(have, choice{"history-memory", "rest"}) {
		require.Equal(c.t, results[0], results[1], "%v gives other results with --memory 128MiB", args)
	}
	return filepath.Join(c.tmp, fmt.Sprintf("run-%d", c.runs-2)), s
}

// trainArgs returns the command line of a combination of train.
func (c *coverer) trainArgs(k *dataKind, have []choice) []string {
	flags := maps.Clone(usual)
	maps.Copy(flags, k.need)
	for _, h := range have {
		if h.flag != "" {
			flags[h.flag] = h.value
		}
	}
	if slices.Contains(model.TemporalKinds, model.Kind(flags["model"])) && flags["fanout"] == usual["fanout"] {
		flags["fanout"] = "3"
	}
	if flags["layers"] != "" && !slices.ContainsFunc(have, func(h choice) bool { return h.flag == "fanout" }) {
		delete(flags, "fanout")
	}
	args := []string{"train", k.path, "--json"}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+c.fill(k, flags[name]))
	}
	return args
}

// useRun calls predict or eval. Where predict wants to know the type of nodes, it gets it.
func (c *coverer) useRun(command, dir string, k *dataKind, have []choice) said {
	s := c.call(c.useArgs(command, dir, k, have))
	given := slices.ContainsFunc(have, func(h choice) bool { return h.flag == "type" })
	if s.code == 0 || command != "predict" || given || !slices.Contains(s.flags, "type") {
		return s
	}
	return c.call(c.useArgs(command, dir, k, append(slices.Clone(have), choice{"type", "TYPE"})))
}

// useArgs returns the command line of a combination of predict or eval.
func (c *coverer) useArgs(command, dir string, k *dataKind, have []choice) []string {
	args := []string{command, dir}
	if command == "predict" {
		args = append(args, filepath.Join(c.tmp, fmt.Sprintf("out-%d", c.runs)))
	}
	for _, h := range have {
		if h.flag != "" && h.flag != "model" {
			args = append(args, "--"+h.flag+"="+c.fill(k, h.value))
		}
	}
	return append(args, "--json")
}

// blamed returns the choices of have that a refusal names. If it names a flag that the data needs,
// blamed returns the data.
func blamed(s said, k *dataKind, have []choice) (list []choice) {
	for _, h := range have {
		if h.flag != "" && slices.Contains(s.flags, h.flag) {
			list = append(list, h)
		}
	}
	for name := range k.need {
		if slices.Contains(s.flags, name) {
			return append(list, choice{"", k.name})
		}
	}
	return list
}

// settle repeats call until it succeeds, each time without one choice that the refusal names. The
// first fixed choices stay.
func (c *coverer) settle(k *dataKind, have []choice, fixed int, call func([]choice) said) ([]choice, bool) {
	for range 40 {
		s := call(have)
		if s.code == 0 {
			return have, true
		}
		var loose []choice
		for _, b := range blamed(s, k, have) {
			if slices.Index(have, b) >= fixed {
				loose = append(loose, b)
			}
		}
		if len(loose) == 0 {
			if len(have) == fixed {
				return nil, false
			}
			loose = have[fixed:] // the refusal names none of the choices
		}
		gone := loose[c.rng.IntN(len(loose))]
		if at := slices.IndexFunc(loose, func(h choice) bool { return c.barred[[2]choice{{"", k.name}, h}] }); at >= 0 {
			gone = loose[at]
		}
		have = slices.DeleteFunc(slices.Clone(have), func(h choice) bool { return h == gone })
	}
	return nil, false
}

// TestCombinations trains for two steps, predicts and evaluates with combinations of options on
// every kind of data. Nothing panics, refusals take one line, and --memory 128MiB gives the same
// results as plenty of memory, bit for bit. With -every-pair it covers all pairs of values: a run
// had both, or a refusal of the two alone names one of them.
func TestCombinations(t *testing.T) {
	list := dataKinds(t)
	c := &coverer{t: t, rng: rand.New(rand.NewPCG(*pairsSeed, 1)), kinds: map[string]*dataKind{}, tmp: t.TempDir(), barred: map[[2]choice]bool{}, clashes: map[[3]choice]bool{}}
	var data []choice
	for _, k := range list {
		data, c.kinds[k.name] = append(data, choice{"", k.name}), k
		id := map[bool]string{true: "e", false: ""}[k.name == "triples"]
		for name, columns := range map[string]string{"PAIRS": "src,dst,relation\n%s1,%s2,", "EVENTS": "src,dst,time\n%s1,%s2,900"} {
			file := filepath.Join(t.TempDir(), name+".csv")
			text := fmt.Sprintf(columns, id, id)
			if name == "PAIRS" {
				text += k.words["REL"]
			}
			require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o666))
			k.words[name] = file
		}
		k.words["LINKS"] = filepath.Join(t.TempDir(), "links.yaml")
		require.NoError(t, os.WriteFile(k.words["LINKS"], []byte("workers: [a, b]\nlinks: [{between: [a, b], rate: 1GB}]\n"), 0o666))
	}
	models := slices.Clone(data)
	for _, value := range coveredTrain["model"] {
		models = append(models, choice{"model", value})
	}
	c.train = newSpace("train", pairShare, coveredTrain, data...)
	uses := []*space{newSpace("predict", pairShare, coveredPredict, models...), newSpace("eval", pairShare, coveredEval, models...)}

	rounds := 3
	if *everyPair {
		rounds = 1 << 30
	}
	for round, fresh, before := 0, 0, 0; round < rounds; round++ {
		k := list[round%len(list)]
		if !*everyPair {
			k = list[c.rng.IntN(len(list))]
		}
		fresh += c.combine(k, uses)
		if (round+1)%len(list) == 0 {
			// pairs alone take a call or two, and most of them fail at once
			if round >= 10*len(list) && 2*fresh < c.runs-before {
				break
			}
			fresh, before = 0, c.runs
		}
	}
	if *everyPair {
		t.Logf("%d calls by combinations; open: %d of train, %d of predict, %d of eval", c.runs, c.train.open, uses[0].open, uses[1].open)
		c.alone(c.train)
		for _, s := range uses {
			c.alone(s)
		}
		for _, s := range append(uses, c.train) {
			t.Logf("%s: %d pairs were run, %d are refused", s.command, len(s.made), len(s.refused))
		}
		t.Logf("%d calls", c.runs)
	}
}

// combine trains with one combination, and predicts and evaluates with one each. It returns how
// many pairs are new.
func (c *coverer) combine(k *dataKind, uses []*space) (fresh int) {
	first := choice{"", k.name}
	barred := func(have []choice, h choice) bool {
		return c.barred[[2]choice{first, h}] || slices.ContainsFunc(have, func(b choice) bool { return c.clashes[clash(k, h, b)] })
	}
	have := c.train.pick(c.rng, []choice{first}, 30, barred)
	var dir string
	var last said
	have, ok := c.settle(k, have, 1, func(have []choice) (s said) {
		dir, s = c.trainBoth(k, have)
		last = s
		if s.code != 0 {
			c.learn(k, blamed(s, k, have))
		}
		return s
	})
	require.True(c.t, ok, "%s: not even the plain run is taken: %v", k.name, last.lines)
	fresh = c.train.cover(have)
	for _, s := range uses {
		use := []choice{first}
		if at := slices.IndexFunc(have, func(h choice) bool { return h.flag == "model" }); at >= 0 {
			use = append(use, have[at])
		}
		fixed := len(use)
		use = s.pick(c.rng, use, 8, func([]choice, choice) bool { return false })
		use, ok := c.settle(k, use, fixed, func(use []choice) said { return c.useRun(s.command, dir, k, use) })
		if ok {
			fresh += s.cover(use)
		}
	}
	require.NoError(c.t, os.RemoveAll(dir))
	return fresh
}

// clash returns the key of clashes for two choices on a kind of data.
func clash(k *dataKind, a, b choice) [3]choice {
	if b.String() < a.String() {
		a, b = b, a
	}
	return [3]choice{{"", k.name}, a, b}
}

// learn tries which of the named choices are refused alone, and which pairs of them together.
func (c *coverer) learn(k *dataKind, named []choice) {
	first := choice{"", k.name}
	named = slices.DeleteFunc(named, func(h choice) bool { return h == first })
	for _, h := range named {
		key := [2]choice{first, h}
		if _, tried := c.barred[key]; !tried {
			c.barred[key] = !c.together(c.train, k, first, h)
		}
	}
	named = slices.DeleteFunc(named, func(h choice) bool { return c.barred[[2]choice{first, h}] })
	for i, a := range named[:min(len(named), 6)] {
		for _, b := range named[:i] {
			key := clash(k, a, b)
			if _, tried := c.clashes[key]; !tried && a.flag != b.flag {
				c.clashes[key] = !c.together(c.train, k, a, b)
			}
		}
	}
}

// together trains with two choices and their companions. It marks the pairs that ran.
func (c *coverer) together(s *space, k *dataKind, a, b choice) bool {
	have := c.accompanied(k, a, b)
	dir, r := c.trainBoth(k, have)
	if r.code != 0 {
		return false
	}
	s.cover(have)
	require.NoError(c.t, os.RemoveAll(dir))
	return true
}

// accompanied returns two choices on a kind of data, with the companions of both.
func (c *coverer) accompanied(k *dataKind, a, b choice) []choice {
	have := []choice{{"", k.name}}
	for _, h := range []choice{a, b} {
		if h.flag != "" {
			have = append(have, h)
		}
	}
	for _, h := range []choice{a, b} {
		for _, with := range companions[h.flag] {
			if !slices.ContainsFunc(have, func(o choice) bool { return o.flag == with.flag }) {
				have = append(have, with)
			}
		}
	}
	return have
}

// alone runs each pair that is still open, on the kinds of data that refuse least of it.
func (c *coverer) alone(s *space) {
	ready := map[string]string{} // a plain run of each kind and model, for predict and eval
	var left []string
	for j, b := range s.choices {
		for _, a := range s.choices[:j] {
			key, open := s.pair(a, b)
			if !open {
				continue
			}
			met, why := c.meet(s, a, b, ready)
			switch {
			case met:
				s.made[key] = true
			case why == "":
				s.refused[key] = true
			default:
				left = append(left, fmt.Sprintf("%s with %s: %s", a, b, why))
			}
		}
	}
	for _, line := range left {
		c.t.Errorf("%s: no run had the pair, and no refusal names it: %s", s.command, line)
	}
}

// meet runs two choices together, and reports whether a run had both. If not, why is empty if a
// refusal names one of them.
func (c *coverer) meet(s *space, a, b choice, ready map[string]string) (met bool, why string) {
	have := []choice{a, b}
	kinds := slices.Sorted(maps.Keys(c.kinds))
	if a.flag == "" {
		kinds, have = []string{a.value}, []choice{b}
	}
	slices.SortStableFunc(kinds, func(x, y string) int { return cmp.Compare(c.bars(x, have), c.bars(y, have)) })
	for _, name := range kinds[:min(2, len(kinds))] {
		k := c.kinds[name]
		all := c.accompanied(k, a, b)
		var r said
		if s == c.train {
			var dir string
			if dir, r = c.trainBoth(k, all); r.code == 0 {
				require.NoError(c.t, os.RemoveAll(dir))
			}
		} else {
			r = c.use(s, k, all, ready)
		}
		if r.code == 0 {
			return true, ""
		}
		if !slices.ContainsFunc(blamed(r, k, all), func(h choice) bool { return h.flag != "" || a.flag == "" }) {
			why = strings.Join(r.lines, " | ")
		}
	}
	return false, why
}

// bars counts the choices of have that a kind of data refuses.
func (c *coverer) bars(kind string, have []choice) (n int) {
	for _, h := range have {
		if c.barred[[2]choice{{"", kind}, h}] {
			n++
		}
	}
	return n
}

// use calls predict or eval on a plain run with this kind of data and model.
func (c *coverer) use(s *space, k *dataKind, have []choice, ready map[string]string) said {
	plain := []choice{{"", k.name}}
	for _, h := range have {
		if h.flag == "model" {
			plain = append(plain, h)
		}
	}
	key := fmt.Sprint(plain)
	if ready[key] == "" {
		dir, r := c.trainBoth(k, plain)
		if r.code != 0 {
			return r
		}
		ready[key] = dir
	}
	return c.useRun(s.command, ready[key], k, have)
}

// TestCombinationsHaveEveryFlag: the tables have every flag of the commands, with values or with a
// reason to leave it out.
func TestCombinationsHaveEveryFlag(t *testing.T) {
	root := newRoot(&logOptions{form: textLog}, nil)
	for command, covered := range map[string]map[string][]string{"train": coveredTrain, "predict": coveredPredict, "eval": coveredEval} {
		cmd, _, err := root.Find([]string{command})
		require.NoError(t, err)
		known := map[string]bool{}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			known[f.Name] = true
			_, left := uncovered[command+" "+f.Name]
			require.True(t, left != (len(covered[f.Name]) > 0), "%s --%s: combine it, or say why not", command, f.Name)
		})
		for name := range covered {
			require.True(t, known[name], "%s has no --%s", command, name)
		}
	}
}
