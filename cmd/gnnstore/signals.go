package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/gnnstore/gnnstore/ingest"
)

// signalError is the cause of a context that ended because of a signal.
type signalError struct{ syscall.Signal }

func (e *signalError) Error() string { return e.String() }

// exitCode returns the code by which shells report a program that the signal killed.
func (e *signalError) exitCode() int { return 128 + int(e.Signal) }

// endBySignal returns a context that ends at the first signal of endings, with a *signalError as
// its cause. A second signal ends the process at once. The caller has to call stop.
func endBySignal(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endings()...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&signalError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}

// endings returns the signals that end a command. A signal stays ignored if the process was started
// so, as SIGHUP by nohup and SIGINT by a shell in the background; SIGTERM always counts.
func endings() []os.Signal {
	list := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

// stoppedError is the error of a command of several runs that a signal interrupted.
type stoppedError struct {
	text  string
	cause error
}

func (e *stoppedError) Error() string { return e.text }
func (e *stoppedError) Unwrap() error { return e.cause }

// failureCode returns the exit code of a command that ended with err: the signal's if a signal
// interrupted the command, 2 if ingest asks a question, else 1.
func failureCode(ctx context.Context, err error) int {
	var ended *signalError
	var run *interruptedError
	var question *ingest.Question
	switch {
	case errors.As(context.Cause(ctx), &ended) && (errors.Is(err, context.Canceled) || errors.As(err, &run)):
		return ended.exitCode()
	case errors.As(err, &question):
		return 2
	}
	return 1
}
