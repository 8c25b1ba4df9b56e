package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// logOptions say what becomes of progress, notes and errors, which go to stderr.
type logOptions struct {
	quiet bool
	form  string // "text" or "json"
}

const (
	textLog = "text"
	jsonLog = "json"
)

// addTo gives all commands below root the flags of o. Before a command runs they change the
// stderr of root.
func (o *logOptions) addTo(root *cobra.Command) {
	f := root.PersistentFlags()
	f.BoolVar(&o.quiet, "quiet", false, "print results and errors alone: no progress, no notes")
	f.StringVar(&o.form, "log", textLog, "form of progress, notes and errors: text or json, an object a line")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if o.form != textLog && o.form != jsonLog {
			return misuse(fmt.Errorf("--log %s: choose text or json", o.form))
		}
		if o.quiet {
			root.SetErr(io.Discard)
		} else if o.form == jsonLog {
			root.SetErr(newJSONLines(root.ErrOrStderr()))
		}
		return nil
	}
}

// fail prints the message of an error.
func (o *logOptions) fail(stderr io.Writer, message string) {
	if o.form == jsonLog {
		jsonLogger(stderr).Error(message)
		return
	}
	fmt.Fprintln(stderr, "gnnstore:", message)
}

// jsonLines writes each whole line that it is given as an object with the keys time, level and msg.
// A line that never ends is not written. It is safe for concurrent use.
type jsonLines struct {
	mu   sync.Mutex
	log  *slog.Logger
	rest []byte // of a line that has not ended
}

func newJSONLines(w io.Writer) *jsonLines { return &jsonLines{log: jsonLogger(w)} }

func jsonLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }

func (j *jsonLines) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	for {
		line, rest, ended := bytes.Cut(j.rest, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			j.log.Info(text)
		}
		j.rest = rest
	}
}
