package interp

// A ptype is a fundamental type of PTX: untyped bits, unsigned, signed, float or predicate.
type ptype struct {
	kind byte // 'b', 'u', 's', 'f', or 'p' for a predicate
	bits int
}

var (
	b8, b16, b32, b64  = ptype{'b', 8}, ptype{'b', 16}, ptype{'b', 32}, ptype{'b', 64}
	u8, u16, u32, u64  = ptype{'u', 8}, ptype{'u', 16}, ptype{'u', 32}, ptype{'u', 64}
	s8, s16, s32, s64  = ptype{'s', 8}, ptype{'s', 16}, ptype{'s', 32}, ptype{'s', 64}
	f16, f32, f64, prd = ptype{'f', 16}, ptype{'f', 32}, ptype{'f', 64}, ptype{'p', 1}
)

var types = map[string]ptype{
	"b8": b8, "b16": b16, "b32": b32, "b64": b64,
	"u8": u8, "u16": u16, "u32": u32, "u64": u64,
	"s8": s8, "s16": s16, "s32": s32, "s64": s64,
	"f16": f16, "f32": f32, "f64": f64, "pred": prd,
}

func (t ptype) bytes() int    { return t.bits / 8 }
func (t ptype) mask() uint64  { return ^uint64(0) >> (64 - t.bits) }
func (t ptype) integer() bool { return t.kind == 'b' || t.kind == 'u' || t.kind == 's' }

// extend widens v, a value of type t in its low bits, to 64 bits.
func (t ptype) extend(v uint64) uint64 {
	shift := 64 - t.bits
	if t.kind == 's' {
		return uint64(int64(v<<shift) >> shift)
	}
	return v << shift >> shift
}

func (t ptype) String() string {
	if t.kind == 'p' {
		return "pred"
	}
	return string(t.kind) + map[int]string{8: "8", 16: "16", 32: "32", 64: "64"}[t.bits]
}
