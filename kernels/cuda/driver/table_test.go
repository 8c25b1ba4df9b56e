package driver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable compares Table with the fields of Calls, and with what gorgonia.go calls to set each.
// It reads the source, so that it needs no header.
func TestTable(t *testing.T) {
	var fields, rows []string
	for i := range reflect.TypeFor[Calls]().NumField() {
		fields = append(fields, reflect.TypeFor[Calls]().Field(i).Name)
	}
	used := gorgoniaCalls(t)
	for _, row := range Table() {
		rows = append(rows, row.Call)
		name := strings.TrimSuffix(strings.TrimSuffix(row.Symbol, "_v2"), "_v3")
		require.True(t, strings.EqualFold(name, "cu"+row.Call), row)
		var want []string
		if row.Gorgonia != "" {
			want = []string{row.Gorgonia}
		}
		got, set := used[row.Call]
		require.True(t, set, row)
		require.Equal(t, want, got, row)
	}
	require.Equal(t, fields, rows)
	require.Len(t, used, len(rows))
}

// gorgoniaCalls returns, for each field of Calls that gorgonia.go sets, the functions of
// gorgonia.org/cu that it calls for that.
func gorgoniaCalls(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "gorgonia.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	used := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 {
			return true
		}
		field, ok := assign.Lhs[0].(*ast.SelectorExpr)
		if _, isFunc := assign.Rhs[0].(*ast.FuncLit); !ok || !isFunc || !isName(field.X, "c") {
			return true
		}
		used[field.Sel.Name] = calledIn(assign.Rhs[0])
		return false
	})
	return used
}

// conversions are the types of gorgonia.org/cu that the source converts to.
var conversions = []string{"Device", "DevicePtr", "DeviceAttribute", "FunctionAttribute", "StreamFlags", "EventFlags"}

// handles are the functions that make a handle of gorgonia.org/cu, with its type.
var handles = map[string]string{"stream": "Stream", "event": "Event", "module": "Module", "function": "Function"}

// calledIn returns the functions and methods of gorgonia.org/cu that n calls, each once.
func calledIn(n ast.Node) []string {
	var names []string
	types := map[string]string{} // of variables
	ast.Inspect(n, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
			if name, ok := assign.Lhs[0].(*ast.Ident); ok {
				types[name.Name] = handleType(assign.Rhs[0], types)
			}
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		name := ""
		if isName(method.X, "cu") && !slices.Contains(conversions, method.Sel.Name) {
			name = method.Sel.Name
		} else if typ := handleType(method.X, types); typ != "" {
			name = typ + "." + method.Sel.Name
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return true
	})
	return names
}

// handleType returns the type in gorgonia.org/cu of an expression, "" if it has none.
func handleType(x ast.Expr, types map[string]string) string {
	if name, ok := x.(*ast.Ident); ok {
		return types[name.Name]
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return ""
	}
	if name, ok := call.Fun.(*ast.Ident); ok {
		return handles[name.Name]
	}
	if conversion, ok := call.Fun.(*ast.SelectorExpr); ok && isName(conversion.X, "cu") && conversion.Sel.Name == "Device" {
		return "Device"
	}
	return ""
}

func isName(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}
