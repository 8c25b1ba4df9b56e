package run

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// Resumes returns an error if a run that was started with saved may not go on with o. The error
// names every option that differs and must not.
func (o Options) Resumes(saved Options) error {
	o.Init, o.InitRows = Absolute(o.Init), AllAbsolute(o.InitRows)
	var errs []error
	for _, d := range Table.Diff(&o, &saved) {
		errs = append(errs, fmt.Errorf("{%s} is %s and the run's is %s", d.Key, cmp.Or(d.Now, "not given"), cmp.Or(d.Then, "not given")))
	}
	return errors.Join(errs...)
}

// differs names the options that run.json and a checkpoint have different values of, and that must
// not differ.
func (o Options) differs(saved Options) string {
	var all []string
	for _, d := range Table.Diff(&o, &saved) {
		all = append(all, fmt.Sprintf("{%s} is %s in %s and %s in the checkpoint", d.Key, cmp.Or(d.Now, "not given"), RecordFile, cmp.Or(d.Then, "not given")))
	}
	return strings.Join(all, ", ")
}
