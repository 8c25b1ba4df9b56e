package table

import (
	_ "embed"
	"strings"
)

//go:embed template.yaml
var template []byte

// Template returns a schema with every key and a comment on each, for a person to edit. Its tables
// do not exist.
func Template() []byte { return template }

// SchemaError is a problem of a schema's text, or of its columns. It names the file and the line.
type SchemaError struct{ Err error }

func (e *SchemaError) Error() string { return e.Err.Error() }
func (e *SchemaError) Unwrap() error { return e.Err }

// inSchemaFile turns an error that begins with the path of a schema into a SchemaError. It returns
// other errors, which are about tables, unchanged.
func inSchemaFile(path string, err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), path+": ") && !strings.HasPrefix(err.Error(), path+", ") {
		return err
	}
	return &SchemaError{err}
}
