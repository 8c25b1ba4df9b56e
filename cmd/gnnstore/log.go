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

// logOptions are the options of stderr, which gets progress, notes and errors.
type logOptions struct {
	quiet bool
	form  string // "text" or "json"
}

const (
	textLog = "text"
	jsonLog = "json"
)

// addTo adds the flags of o to root and all its commands. Before a command runs, it sets the stderr
// of root by them.
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

// fail prints an error's message, also with --quiet.
func (o *logOptions) fail(stderr io.Writer, message string) {
	if o.form == jsonLog {
		jsonLogger(stderr).Error(message)
		return
	}
	fmt.Fprintln(stderr, "gnnstore:", message)
}

// jsonLines is a writer of text that writes each whole line as a JSON object with the keys time,
// level and msg. It drops a last line without end. It is safe for concurrent use.
type jsonLines struct {
	mu   sync.Mutex
	log  *slog.Logger
	rest []byte // the start of a line whose end has not come
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
