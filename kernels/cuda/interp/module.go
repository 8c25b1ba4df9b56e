package interp

import "slices"

// A Module is a parsed PTX text. It is immutable, and safe for concurrent use.
type Module struct {
	// Version and Target are the operands of .version and .target, such as "7.8" and "sm_80".
	Version, Target string

	kernels   map[string]*Kernel
	names     []string // of the kernels, in the order of the text
	functions map[string]*function
	variables map[string]*variable
}

// Kernel returns the entry of that name, or nil.
func (m *Module) Kernel(name string) *Kernel { return m.kernels[name] }

// Kernels returns the names of all entries, in the order of the text.
func (m *Module) Kernels() []string { return slices.Clone(m.names) }

// A Kernel is an entry of a module. It is immutable, and safe for concurrent use.
type Kernel struct {
	Name string
	// Params lists the parameters in the order of the text. Do not change it.
	Params []Param
	// ParamBytes is the length of the packed parameters that a launch wants.
	ParamBytes int
	// MaxThreads and ExactThreads are the operands of .maxntid and .reqntid; zeros where there is
	// none.
	MaxThreads, ExactThreads [3]uint32
	// SharedBytes is the size of the shared memory that the kernel declares.
	SharedBytes int

	module     *Module
	code       []instruction
	start      int32 // the instruction where lanes begin; functions lie before it
	slots      []slot
	predicates []string // their names
	localBytes int
	// Bytes of the smallest access to shared and to global memory: the units of the race check.
	sharedGranule, globalGranule int
	defined                      []uint32 // of each slot, at the start of a block: all lanes, or none for a register
}

// A Param is a parameter of a kernel: Size bytes at Offset of the packed parameters.
type Param struct {
	Name                string
	Type                string // "u64", "f32"; "b8" for a struct
	Size, Align, Offset int
}

// Instructions returns the number of instructions of the kernel, and of the functions that it
// calls, whose opcode starts with prefix.
func (k *Kernel) Instructions(prefix string) int {
	n := 0
	for i := range k.code {
		if len(k.code[i].opcode) >= len(prefix) && k.code[i].opcode[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}

// A variable lies in memory: of the module (global, const), a block (shared), a lane (local), or a
// call (param).
type variable struct {
	name   string
	space  string // "global", "const", "shared", "local", "param"
	typ    ptype
	size   int
	align  int
	init   []byte // shorter than size where the rest is zeros
	extern bool   // .extern .shared: its size comes with the launch
	offset int    // from the start of its space
}

// A function is a .func or an .entry as the parser leaves it.
type function struct {
	name       string
	entry      bool
	line       int
	params     []*variable
	results    []*variable
	locals     []*variable // .local and .param variables of its body
	shareds    []*variable
	regs       []register
	statements []statement
	labels     map[string]int // to the index of a statement
	defined    bool           // it has a body
	maxThreads [3]uint32
	exact      [3]uint32
}

type register struct {
	name string
	typ  ptype
}

// A statement is an instruction whose names are resolved.
type statement struct {
	line    int
	text    string
	guard   *argument // the predicate of @%p
	guarded bool
	negated bool
	opcode  string
	args    []argument
}

// An argument is an operand as it stands in the text.
type argument struct {
	kind     argumentKind
	register int // of its function
	value    uint64
	float    byte      // 'f' or 'd' for a literal 0f… or 0d…; else 0
	name     string    // of a symbol or a special register
	variable *variable // which the symbol names, if it names one
	negated  bool      // !%p
	offset   int64     // of an address, [base+offset]
	parts    []argument
}

type argumentKind uint8

const (
	argRegister  argumentKind = iota
	argImmediate              // a number
	argSpecial                // %tid.x
	argSymbol                 // a variable, a function or a label
	argSink                   // _
	argAddress                // [parts[0]+offset]
	argVector                 // {parts}
	argPair                   // parts[0]|parts[1]
	argList                   // (parts)
)
