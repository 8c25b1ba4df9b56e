package interp

import (
	"fmt"
	"math/bits"
)

// An operation has the types of its operands, and what it does to one lane. Operands come with the
// bits above their type 0, and leave so.
type operation struct {
	to   ptype
	from []ptype
	f1   func(a uint64) uint64
	f2   func(a, b uint64) uint64
	f3   func(a, b, c uint64) uint64
	// divides: the second operand must not be 0.
	divides bool
}

// operations has every form that is no more than a function of its operands, by its full opcode. A
// form that is not there is unknown.
var operations = map[string]operation{}

func init() {
	for _, bits := range []int{16, 32, 64} {
		addIntegers(ptype{'u', bits}, ptype{'s', bits}, ptype{'b', bits})
	}
	addBits()
	addFloats()
	addApproximations()
}

func one(name string, to, a ptype, f func(a uint64) uint64) {
	operations[name] = operation{to: to, from: []ptype{a}, f1: f}
}

func two(name string, to, a, b ptype, f func(a, b uint64) uint64) {
	operations[name] = operation{to: to, from: []ptype{a, b}, f2: f}
}

func three(name string, to, a, b, c ptype, f func(a, b, c uint64) uint64) {
	operations[name] = operation{to: to, from: []ptype{a, b, c}, f3: f}
}

// addIntegers adds the arithmetic of one width.
func addIntegers(u, s, b ptype) {
	mask := u.mask()
	for _, t := range []ptype{u, s} {
		two("add."+t.String(), t, t, t, func(a, b uint64) uint64 { return (a + b) & mask })
		two("sub."+t.String(), t, t, t, func(a, b uint64) uint64 { return (a - b) & mask })
		two("mul.lo."+t.String(), t, t, t, func(a, b uint64) uint64 { return a * b & mask })
		three("mad.lo."+t.String(), t, t, t, t, func(a, b, c uint64) uint64 { return (a*b + c) & mask })
		high := func(a, b uint64) uint64 { return t.extend(a) * t.extend(b) >> t.bits & mask }
		if t.bits == 64 {
			high = func(a, b uint64) uint64 { hi, _ := bits.Mul64(a, b); return hi }
			if t.kind == 's' {
				high = func(a, b uint64) uint64 {
					hi, _ := bits.Mul64(a, b)
					return hi - a&uint64(int64(b)>>63) - b&uint64(int64(a)>>63)
				}
			}
		}
		two("mul.hi."+t.String(), t, t, t, high)
		three("mad.hi."+t.String(), t, t, t, t, func(a, b, c uint64) uint64 { return (high(a, b) + c) & mask })
		if t.bits < 64 {
			wide := ptype{t.kind, 2 * t.bits}
			two("mul.wide."+t.String(), wide, t, t, func(a, b uint64) uint64 {
				return t.extend(a) * t.extend(b) & wide.mask()
			})
			three("mad.wide."+t.String(), wide, t, t, wide, func(a, b, c uint64) uint64 {
				return (t.extend(a)*t.extend(b) + c) & wide.mask()
			})
		}
	}
	divide := func(name string, t ptype, f func(a, b uint64) uint64) {
		operations[name+"."+t.String()] = operation{to: t, from: []ptype{t, t}, f2: f, divides: true}
	}
	signed := func(v uint64) int64 { return int64(s.extend(v)) }
	divide("div", u, func(a, b uint64) uint64 { return a / b })
	divide("rem", u, func(a, b uint64) uint64 { return a % b })
	divide("div", s, func(a, b uint64) uint64 { return uint64(signed(a)/signed(b)) & mask })
	divide("rem", s, func(a, b uint64) uint64 { return uint64(signed(a)%signed(b)) & mask })
	two("min."+u.String(), u, u, u, func(a, b uint64) uint64 { return min(a, b) })
	two("max."+u.String(), u, u, u, func(a, b uint64) uint64 { return max(a, b) })
	two("min."+s.String(), s, s, s, func(a, b uint64) uint64 { return uint64(min(signed(a), signed(b))) & mask })
	two("max."+s.String(), s, s, s, func(a, b uint64) uint64 { return uint64(max(signed(a), signed(b))) & mask })
	one("neg."+s.String(), s, s, func(a uint64) uint64 { return -a & mask })
	one("abs."+s.String(), s, s, func(a uint64) uint64 { return uint64(max(signed(a), -signed(a))) & mask })

	two("and."+b.String(), b, b, b, func(a, b uint64) uint64 { return a & b })
	two("or."+b.String(), b, b, b, func(a, b uint64) uint64 { return a | b })
	two("xor."+b.String(), b, b, b, func(a, b uint64) uint64 { return a ^ b })
	one("not."+b.String(), b, b, func(a uint64) uint64 { return ^a & mask })
	// A shift by the width or more gives 0, or the sign; Go's does so too.
	two("shl."+b.String(), b, b, u32, func(a, n uint64) uint64 { return a << n & mask })
	two("shr."+b.String(), b, b, u32, func(a, n uint64) uint64 { return a >> n })
	two("shr."+u.String(), u, u, u32, func(a, n uint64) uint64 { return a >> n })
	two("shr."+s.String(), s, s, u32, func(a, n uint64) uint64 { return uint64(signed(a)>>n) & mask })
}

// addBits adds what looks at bits, and has only 32 and 64 of them.
func addBits() {
	for _, n := range []int{32, 64} {
		u, s, b := ptype{'u', n}, ptype{'s', n}, ptype{'b', n}
		one("popc."+b.String(), u32, b, func(a uint64) uint64 { return uint64(bits.OnesCount64(a)) })
		one("clz."+b.String(), u32, b, func(a uint64) uint64 { return uint64(bits.LeadingZeros64(a) - 64 + n) })
		one("brev."+b.String(), b, b, func(a uint64) uint64 { return bits.Reverse64(a) >> (64 - n) })
		one("bfind."+u.String(), u32, u, func(a uint64) uint64 { return uint64(bits.Len64(a)-1) & u32.mask() })
		three("bfe."+u.String(), u, u, u32, u32, func(a, at, width uint64) uint64 {
			return a >> (at & 255) & (1<<(width&255) - 1)
		})
		three("bfe."+s.String(), s, s, u32, u32, func(a, at, width uint64) uint64 {
			at, width = at&255, width&255
			if width == 0 {
				return 0
			}
			v := int64(s.extend(a)) >> at // beyond the width the field has the sign
			if width < 64 {
				v = v << (64 - width) >> (64 - width)
			}
			return uint64(v) & s.mask()
		})
		for _, name := range []string{"l", "r"} {
			if n == 64 {
				continue
			}
			for _, mode := range []string{"wrap", "clamp"} {
				three(fmt.Sprintf("shf.%s.%s.b32", name, mode), b32, b32, b32, u32, func(low, high, by uint64) uint64 {
					if mode == "wrap" {
						by &= 31
					}
					by = min(by, 32)
					both := high<<32 | low
					if name == "l" {
						return both << by >> 32
					}
					return both >> by & b32.mask()
				})
			}
		}
	}
	// Each nibble of the selector names a byte of b:a. Its top bit asks for the sign of the byte.
	three("prmt.b32", b32, b32, b32, u32, func(a, b, selector uint64) uint64 {
		both := b<<32 | a
		var r uint64
		for i := range 4 {
			pick := selector >> (4 * i) & 15
			v := both >> (8 * (pick & 7)) & 0xff
			if pick&8 != 0 {
				v = uint64(int8(v)>>7) & 0xff
			}
			r |= v << (8 * i)
		}
		return r
	})
}

// insertBits is bfi, which has four operands: width bits of a go into b at a place.
func insertBits(a, b, at, width uint64, t ptype) uint64 {
	field := uint64(1)<<(width&255) - 1
	return (b&^(field<<(at&255)) | a&field<<(at&255)) & t.mask()
}
