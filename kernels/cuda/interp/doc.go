// Package interp runs the PTX that clang makes of CUDA kernels, on a CPU and without any part of
// CUDA, so that the kernels that ship are tested on machines without a GPU. It is for tests: it
// checks all that it can, and leaves speed to devices.
//
// [Parse] reads a module. [Module.Kernel] gives a [Kernel] with its parameters, [Memory] is the
// global memory of a device, and [Kernel.Launch] or [Kernel.Run] runs a grid of blocks on it. A
// driver in Go needs no more: allocations and copies are methods of Memory.
//
//	module, err := interp.Parse(text)
//	memory := interp.NewMemory()
//	x, err := memory.Alloc(4 * n)
//	err = module.Kernel("axpy").Launch(memory, grid, block, 0, params)
//
// A module and its kernels are immutable, and any goroutines may launch them. A Memory belongs to
// the caller and may be used by several goroutines, as long as no two use the same bytes and one
// writes. A launch keeps neither params nor any memory after it has returned.
//
// # What it finds
//
// An access outside every allocation, or at an address that is no multiple of the access's size; a
// vector of four words is one access of 16 bytes. A race in shared memory: two accesses to a byte
// by different threads, one a write, that no barrier parts. With [Memory].Races, a race in global
// memory. A read of a register that was never written, in this lane and this block. Lanes that
// must meet and cannot. A division by zero, a trap, and a kernel that does not end. An [Error]
// names kernel, line, instruction, block and thread.
//
// An opcode, a modifier or an operand that the package does not know is an error of Parse. Nothing
// is skipped, but for hints on caches and for .pragma "nounroll".
//
// Approximate instructions, such as ex2.approx, give results as wrong as the PTX ISA allows. So a
// kernel whose tolerance is too tight for them fails here.
//
// Blocks run one after the other in an order that the seed draws. Between two barriers warps do so
// too.
//
// # How lanes part and meet
//
// A warp has 32 lanes, with a program counter each. Lanes with the same one are a group, and a
// group executes an instruction at once: instructions are compiled to closures that loop over the
// lanes. A branch that not all take parts a group in two. The group with the lowest program counter
// goes first, until it comes to where another stands; then they are one again. Compilers lay out
// code such that this is where the paths join.
//
// That alone would run some lanes ahead through a shuffle that others have yet to reach. So lanes
// that reach shfl.sync, vote.sync, match.sync, redux.sync, bar.warp.sync or a barrier are parked.
// They leave the groups until every lane that must come stands at the same instruction:
// for *.sync the lanes that its mask names, for a barrier all that have not ended. Then the
// instruction runs for all of them at once. A lane that runs alone from there on is in a group of
// its own. Where nothing can run and lanes are still parked, the error names the line at which each
// of them waits.
//
// This is stricter than a device of sm_70 or later in two ways. There, lanes may meet at two
// shuffles in two branches, and a lane that has ended counts as come (CUDA C++ Programming Guide,
// "Independent Thread Scheduling"). Kernels that need this are refused here, since the same shapes
// come from mistakes.
//
// Lanes of a warp are not taken to run in step, although they do here: what one writes to shared
// memory, another may read only after a barrier or bar.warp.sync. A shuffle orders no memory,
// except that what a lane read before it may be written after it.
//
// # What it does not see
//
// The order in which writes of one block reach another; what ptxas does, such as fusing mul and add
// into fma; registers, spills and speed. Shared variables of a module count for each kernel.
//
// # Where to start
//
// parse.go and operand.go read text into statements, compile.go turns them into instructions, and
// integers.go and floats.go have the table of what one lane does. warp.go is the scheduler,
// access.go and race.go the checks, launch.go the grid.
//
// # Why not
//
// gpuocelot, which tinygrad uses in its tests, stops at PTX for sm_35; tinygrad proposes an
// emulator of its own in its place (tinygrad#17865, 2026). GPGPU-Sim wants the tools of CUDA 11 and
// refuses newer opcodes. HIP-CPU, and other translators of CUDA sources, do not run the PTX that
// ships: a wide load that clang has split, or a parameter at another offset, would not be seen.
//
// A big switch on each step was the first trial: it ran 13 to 20 million lane instructions a
// second. Closures run 150 to 290 million a second of processor time (BenchmarkLaunch on an AMD
// EPYC), and the kernels that ship some 130 million with Races. Compiling to Go or C would be
// faster still, and would need a compiler where tests run.
//
// Lanes could be goroutines that meet at barriers. Then the order would change from run to run, and
// a lane that never comes would be a deadlock, which has no line number.
//
// Asynchronous copies (cp.async) are left out until a kernel has them. So are arithmetic in f16 and
// bf16, .ftz, shapes of mma.sync other than m16n8k8 in tf32, and barriers that not all threads of a
// block take part in.
package interp
