package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// controlled is the file that ranks gradients. A control replaces the norms before the line rank.
const (
	controlled = "train/history/verdict.go"
	rank       = "	limit, infinite := uint64(0), 0"
)

// controls has the loop bodies that replace the norms of a layer. If the criterion helps history,
// these lose accuracy. Norms that are not finite stay, so that their rows are never kept.
var controls = map[string]string{
	"random":  `sample.Hash(uint64(step), uint64(p.Layer), uint64(p.Type), uint64(m.Nodes[i])) % notANumber`,
	"inverse": `notANumber - 1 - uint64(math.Float32bits(norm)&math.MaxInt32)`,
}

// control returns text, the source of controlled, with the norms replaced. No flag of gnnstore does
// this.
func control(text []byte, name string) ([]byte, error) {
	body, ok := controls[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("-control %s: want inverse or random", name)
	case bytes.Count(text, []byte(rank)) != 1 || !bytes.Contains(text, []byte("import (\n")):
		return nil, fmt.Errorf("-control: %s has another form than this tool knows", controlled)
	}
	changed := strings.Replace(string(text), rank, "	m.Norms = control(step, p, m)\n"+rank, 1)
	imports := "import (\n"
	if name == "random" {
		imports += "	\"github.com/gnnstore/gnnstore/train/sample\"\n"
	}
	return []byte(strings.Replace(changed, "import (\n", imports, 1) + fmt.Sprintf(`
func control(step int, p *Part, m *Measured) []float32 {
	const notANumber = 0x7f80_0000
	norms := make([]float32, len(m.Norms))
	for i, norm := range m.Norms {
		if norms[i] = norm; uint64(math.Float32bits(norm)&math.MaxInt32) < notANumber {
			norms[i] = math.Float32frombits(uint32(%s))
		}
	}
	_, _ = step, p
	return norms
}
`, body)), nil
}

// buildControl builds gnnstore with the norms of a control, into dir. The tree does not change.
func buildControl(ctx context.Context, dir, name string) (cli.Binary, error) {
	file, err := filepath.Abs(controlled)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if text, err = control(text, name); err != nil {
		return "", err
	}
	changed, overlay, binary := filepath.Join(dir, "verdict.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "gnnstore-"+name)
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err = errors.Join(err, os.WriteFile(changed, text, 0o666), os.WriteFile(overlay, replace, 0o666)); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", binary, "./cmd/gnnstore")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build -overlay: %w\n%s", err, bytes.TrimSpace(out))
	}
	return cli.Binary(binary), nil
}

// controlNames returns the values of -control.
func controlNames() []string {
	var names []string
	for name := range controls {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
