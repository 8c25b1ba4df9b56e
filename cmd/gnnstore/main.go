// Command gnnstore ingests graphs into sealed datasets, trains graph neural networks on them, and
// shows what each tier of the memory did. Results go to stdout, progress and errors to stderr; the
// exit code is 0 when done, 1 when it failed, 2 when it was misused or ingest asks a question, and
// 128 + n when signal n interrupted it, as shells have it. One file a command; start at newRoot.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and returns its exit code. The first SIGINT, SIGHUP or SIGTERM ends
// the command at its next boundary, a second one at once.
func execute(args []string, stdout, stderr io.Writer) int {
	ctx, stop := endBySignal(context.Background())
	defer stop()

	out := &output{Writer: visible{stdout}}
	stderr = visible{stderr}
	log := &logOptions{form: textLog}
	root := newRoot(log, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeFlags(root)
	}
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = out.err
	}
	if err == nil {
		return 0
	}
	var misuse *misuseError
	if errors.As(err, &misuse) {
		for line := range strings.Lines(withFlags(misuse.Error())) {
			log.fail(stderr, strings.TrimSpace(line))
		}
		if log.form != jsonLog {
			fmt.Fprintf(stderr, "usage: %s   (--help shows more)\n", cmd.UseLine())
		}
		return 2
	}
	if quiet := new(quietError); !errors.As(err, &quiet) {
		message := withFlags(oneLine(err))
		// The rest of the message stays, since it may name the checkpoint that was kept.
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			message = strings.ReplaceAll(message, context.Canceled.Error(), "interrupted")
		}
		log.fail(stderr, message+placeAdvice(err)+schemaAdvice(err)+nearPath(message, cmd.Flags().Args()))
	}
	return failureCode(ctx, err)
}

// output remembers the first error of stdout, so that results nobody could read are no success.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("write the output: %w", err)
	}
	return n, err
}

// misuseError is a command line that cannot be followed; it may hold several lines.
type misuseError struct{ error }

func misuse(err error) error {
	if err == nil {
		return nil
	}
	return &misuseError{err}
}

// oneLine joins the lines of joined errors.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

// extraCommands are commands that only a build with their tag has.
var extraCommands []func() *cobra.Command

// newRoot returns the command gnnstore with all its subcommands. line is the command line to run. A
// format of ingest gets its flags only if line names it, since making the flags of all formats
// takes longer than many commands run. If line is nil, all formats get them.
func newRoot(log *logOptions, line []string) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:           "gnnstore",
		Short:         "Train graph neural networks on graphs larger than memory, on one machine",
		Long:          "Train graph neural networks on graphs larger than memory, on one machine.\nNew here? gnnstore demo",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				fmt.Fprintln(cmd.OutOrStdout(), "gnnstore", version())
				return nil
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVar(&showVersion, "version", false, "print the version; gnnstore version says more")
	log.addTo(root)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(groupFlags(newIngest(line)), groupFlags(newGenerate()), newExport(), newPartition(), newInspect(),
		newVerify(), groupFlags(newTrain()), groupFlags(newSweep()), groupFlags(newPredict()), groupFlags(newEval()),
		groupFlags(newTrace()), newStats(), newRuns(), newBench(), newDoctor(), newDemo(), newVersion())
	for _, more := range extraCommands {
		root.AddCommand(more())
	}
	root.AddCommand(newTopics()...)
	return root
}

// exactArgs wants the named arguments, each once.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			missing := names[len(args):]
			return misuse(fmt.Errorf("%s %s missing", strings.Join(missing, " and "), map[bool]string{true: "is", false: "are"}[len(missing) == 1]))
		case len(args) > len(names) && len(names) == 0 && !cmd.HasParent():
			return misuse(fmt.Errorf("unknown command %q; gnnstore --help lists them%s", args[0], didYouMean(args[0], commandNames(cmd), "%s")))
		case len(args) > len(names):
			return misuse(fmt.Errorf("%q is one argument too many", args[len(names)]))
		}
		return nil
	}
}
