package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Resumes says whether a run that was started with saved may go on with o, naming every option that
// may not differ.
func (o Options) Resumes(saved Options) error {
	o.Init, o.InitRows = Absolute(o.Init), AllAbsolute(o.InitRows)
	var errs []error
	for _, d := range o.differences(saved) {
		errs = append(errs, fmt.Errorf("{%s} is %s and the run's is %s", d.key, d.now, d.then))
	}
	return errors.Join(errs...)
}

// Differs names the options in run.json that a checkpoint has another value of, and that may not
// differ.
func (o Options) Differs(saved Options) string {
	var all []string
	for _, d := range o.differences(saved) {
		all = append(all, fmt.Sprintf("{%s} is %s in %s and %s in the checkpoint", d.key, d.now, RecordFile, d.then))
	}
	return strings.Join(all, ", ")
}

// difference is an option of two values, under its JSON key.
type difference struct{ key, now, then string }

// differences are those between o and saved that would change what a run computes. Options with the
// tag resume:"free" change only how it goes, but the epochs of a schedule that ends with them, and
// weights to begin with.
func (o Options) differences(saved Options) (all []difference) {
	now, then := o.texts(), saved.texts()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		free := now[name].free
		switch {
		case name == "epochs" && o.Schedule.Kind == optim.Cosine, name == "init" && o.Init != "", name == "init_rows" && len(o.InitRows) > 0:
			free = false
		}
		if !free && now[name] != then[name] {
			all = append(all, difference{name, now[name].text, then[name].text})
		}
	}
	return all
}

// option is the text of one, and whether it may differ when a run is resumed.
type option struct {
	text string
	free bool
}

// texts has every option under the name that it has in JSON.
func (o Options) texts() map[string]option {
	texts := map[string]option{}
	addTexts(texts, reflect.ValueOf(o))
	set := func(name, text string) { texts[name] = option{text, texts[name].free} }
	set("kappa", sample.KappaText(o.Kappa))
	for name, n := range map[string]int64{
		"epochs": int64(o.Epochs), "patience": int64(o.Patience), "t_stale": int64(o.TStale), "history_start": int64(o.HistoryStart),
		"history_lag": int64(o.HistoryLag), "history_bytes": o.HistoryBytes, "staleness": int64(o.Staleness), "batch": int64(o.Batch), "identity": int64(o.Identity),
	} {
		if n == Auto {
			set(name, "auto")
		}
	}
	if o.HistoryBytes == history.Rest {
		set("history_bytes", "rest")
	}
	return texts
}

// addTexts adds the fields of a struct, and those of the structs in it; of one that is free as a
// whole nothing is compared.
func addTexts(texts map[string]option, options reflect.Value) {
	for i := range options.NumField() {
		field, value := options.Type().Field(i), options.Field(i)
		free := field.Tag.Get("resume") == "free"
		switch {
		case value.Kind() != reflect.Struct:
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			text, err := json.Marshal(value.Interface())
			if err != nil {
				panic("run: option " + name + " is no JSON: " + err.Error())
			}
			texts[name] = option{string(text), free}
		case !free:
			addTexts(texts, value)
		}
	}
}
