package generate

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/table"
)

// readTable returns the rows of a table, less its titles.
func readTable(t *testing.T, path string) [][]string {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return rows[1:]
}

// TestChurn computes the probabilities anew from the tables, and compares how many users leave.
func TestChurn(t *testing.T) {
	o := Options{Nodes: 4200}
	dir, files := writeRaw(t, churn, "tables", o)
	require.ElementsMatch(t, []string{"users.csv", "products.csv", "buys.csv", "knows.csv", "truth.csv", "schema.yaml"}, files)
	users, truth := readTable(t, filepath.Join(dir, "users.csv")), readTable(t, filepath.Join(dir, "truth.csv"))
	require.Len(t, users, 4000)
	returns := map[string]float64{}
	for _, p := range readTable(t, filepath.Join(dir, "products.csv")) {
		returns[p[0]], _ = strconv.ParseFloat(p[3], 64)
	}
	type sum struct{ n, of float64 }
	own, bought, friends := map[string]float64{}, map[string]sum{}, map[string]sum{}
	for _, u := range users {
		x := churnUser{country: slices.Index(churnCountries[:], u[2]), plan: slices.Index(churnPlans[:], u[3])}
		x.age, _ = strconv.Atoi(u[1])
		x.tickets, _ = strconv.Atoi(u[6])
		months, err := strconv.Atoi(u[5])
		require.NoError(t, err)
		x.tenure = 30 * months
		own[u[0]] = x.own()
	}
	for _, b := range readTable(t, filepath.Join(dir, "buys.csv")) {
		bought[b[0]] = sum{bought[b[0]].n + 1, bought[b[0]].of + returns[b[1]]}
	}
	for _, k := range readTable(t, filepath.Join(dir, "knows.csv")) {
		friends[k[0]] = sum{friends[k[0]].n + 1, friends[k[0]].of + own[k[1]]}
	}
	left, expected, parts := 0.0, 0.0, map[string]int{}
	for i, u := range users {
		p, err := strconv.ParseFloat(truth[i][1], 64)
		require.NoError(t, err)
		require.Equal(t, u[0], truth[i][0])
		b, f := bought[u[0]], friends[u[0]]
		// shares of returns are rounded
		require.InDelta(t, churnProbability(own[u[0]], int(b.n), b.of, int(f.n), f.of), p, 1e-3, u[0])
		if expected += p; u[8] == "yes" {
			left++
		}
		parts[u[9]]++
	}
	require.InDelta(t, expected, left, 120, "some four deviations")
	require.Equal(t, map[string]int{"train": 2400, "valid": 800, "test": 800}, parts)

	again, _ := writeRaw(t, churn, "again", o)
	for _, file := range files {
		want, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(again, file))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), file)
	}
	_, err := Open(churn, o)
	require.ErrorContains(t, err, "kind churn is tables")
}

// TestChurnLeak: ingest reads the tables, and refuses the column that Leak adds.
func TestChurnLeak(t *testing.T) {
	ingestOf := func(o Options) (*build.Report, error) {
		dir, _ := writeRaw(t, churn, "tables", o)
		s, err := table.Open(filepath.Join(dir, "schema.yaml"), table.Options{})
		require.NoError(t, err)
		defer s.Close()
		return build.Build(t.Context(), s, filepath.Join(t.TempDir(), "churn.gnn"), build.Options{})
	}
	report, err := ingestOf(Options{Nodes: 2100})
	require.NoError(t, err)
	require.Equal(t, []string{"no", "yes"}, report.Labels[0].ClassNames)
	require.Equal(t, 1200, report.Splits[0].Train)
	_, err = ingestOf(Options{Nodes: 2100, Leak: true})
	require.ErrorContains(t, err, "closed")
	require.ErrorContains(t, new(Options{Leak: true}).Validate("reddit"), "{leak}: it is for kind churn")
	require.ErrorContains(t, new(Options{Dim: 3}).Validate(churn), "kind churn has columns and classes of its own")
}
