package ingest

import "fmt"

// Question is an error that only the user can settle: the source has more than one meaning, and the
// text names an option for each. Commands end with the exit code of misuse.
type Question struct{ err error }

// Ask makes a Question, in the form of fmt.Errorf.
func Ask(format string, args ...any) error { return &Question{fmt.Errorf(format, args...)} }

func (q *Question) Error() string { return q.err.Error() }
func (q *Question) Unwrap() error { return q.err }
