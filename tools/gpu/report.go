package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeReport writes table.md, for tools/results, and stages.json.
func writeReport(folder string, outcomes []outcome) error {
	text, err := json.MarshalIndent(outcomes, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "table.md"), []byte(table(outcomes)), 0o666),
		os.WriteFile(filepath.Join(folder, "stages.json"), append(text, '\n'), 0o666),
	)
}

// table returns outcomes as Markdown.
func table(outcomes []outcome) string {
	var b strings.Builder
	b.WriteString("| stage | result | s | figures |\n| --- | --- | --- | --- |\n")
	for _, o := range outcomes {
		figures := strings.Join(o.Figures, ", ")
		if o.Error != "" {
			figures = strings.TrimSuffix(strings.ReplaceAll(o.Error, "\n", "; ")+". "+figures, ". ")
		}
		figures = strings.ReplaceAll(figures, "|", `\|`)
		fmt.Fprintf(&b, "| %d %s | %s | %.1f | %s |\n", o.Stage, o.Name, o.Result, o.Seconds, figures)
	}
	return b.String()
}
